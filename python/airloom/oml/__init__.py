"""OML, the measurement library of ORBIT and OMF: its streams as text, collected and sent.

=============  ============================================================
``stream``     the measurement stream protocol (OMSP) as text: read, write
``database``   the tables of a collection server, one SQLite file a domain
``collector``  takes the streams of OML clients over TCP
``reporter``   sends the samples of runs to a collection server or a file
=============  ============================================================
"""
