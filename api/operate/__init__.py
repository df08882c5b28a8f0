"""What operators read: health, readiness, metrics, and the status of networks."""
