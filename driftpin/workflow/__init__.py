"""What the command line and the monitor both do with the store: order, launch, assess, bless. Never torch."""
