"""Environment capture: what is loaded, not what was installed."""

from runner.capture.capture import capture_environment
from runner.capture.device import device_class
from runner.capture.microprobes import MicroprobeShapes

__all__ = ["MicroprobeShapes", "capture_environment", "device_class"]
