"""Profiles of OpenTelemetry (OTLP profiles, v1development of opentelemetry-proto 1.8 and later)."""
