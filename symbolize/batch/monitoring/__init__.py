"""Monitoring of a batch: logs, metrics, the report at the end."""
