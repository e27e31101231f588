"""Who may use the service: API keys, their roles and what belongs to whom."""
