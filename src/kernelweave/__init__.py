"""kernelweave."""
