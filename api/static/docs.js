// The validator of Swagger UI is a service elsewhere: `validatorUrl: null` keeps the page on its own origin.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#page",
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
});
