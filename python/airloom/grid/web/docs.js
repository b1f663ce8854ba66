"use strict";
// Lists the calls of the OpenAPI description.

fetch("/openapi.json").then((answer) => answer.json()).then((said) => {
  const body = document.getElementById("calls");
  for (const [path, methods] of Object.entries(said.paths)) {
    for (const [method, call] of Object.entries(methods)) {
      const row = body.insertRow();
      row.insertCell().append(Object.assign(document.createElement("code"), { textContent: `${method.toUpperCase()} ${path}` }));
      row.insertCell().textContent = call.description || call.summary;
    }
  }
});
