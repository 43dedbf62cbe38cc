"""RabbitMQ: the wire format, the client of the API, the server of the engine."""
