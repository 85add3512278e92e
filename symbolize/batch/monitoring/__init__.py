"""What is told of a batch: logs, metrics, the closing report. Looks on, and costs the batch nothing."""
