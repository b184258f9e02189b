"""What the backends of a training service share: everything but the SDK's own verbs."""
