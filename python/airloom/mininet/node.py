"""All node classes, under the module name that Mininet scripts import."""

from airloom.mininet.controllers import (
    NOX,
    Controller,
    DefaultController,
    DefaultControllers,
    NullController,
    OVSController,
    RemoteController,
    Ryu,
    findController,
)
from airloom.mininet.hosts import CPULimitedHost, Host, Node
from airloom.mininet.switches import (
    IVSSwitch,
    LearningSwitch,
    LinuxBridge,
    OVSBridge,
    OVSKernelSwitch,
    OVSSwitch,
    Switch,
    UserSwitch,
)

__all__ = [
    "NOX",
    "CPULimitedHost",
    "Controller",
    "DefaultController",
    "DefaultControllers",
    "Host",
    "IVSSwitch",
    "LearningSwitch",
    "LinuxBridge",
    "Node",
    "NullController",
    "OVSBridge",
    "OVSController",
    "OVSKernelSwitch",
    "OVSSwitch",
    "RemoteController",
    "Ryu",
    "Switch",
    "UserSwitch",
    "findController",
]
