"""The CUDA device kind: offers what `_null` does."""

from kernel_foundry_native._null import Argument as Argument
from kernel_foundry_native._null import Buffer as Buffer
from kernel_foundry_native._null import Compiler as Compiler
from kernel_foundry_native._null import Cover as Cover
from kernel_foundry_native._null import Device as Device
from kernel_foundry_native._null import LaunchSequence as LaunchSequence
from kernel_foundry_native._null import Measurement as Measurement
from kernel_foundry_native._null import MeasureOptions as MeasureOptions
from kernel_foundry_native._null import ObjectCode as ObjectCode
from kernel_foundry_native._null import Program as Program
from kernel_foundry_native._null import SharedMemory as SharedMemory
from kernel_foundry_native._null import Trespass as Trespass
from kernel_foundry_native._null import WatchedZones as WatchedZones
from kernel_foundry_native._null import buffer_argument as buffer_argument
from kernel_foundry_native._null import device_count as device_count
from kernel_foundry_native._null import local_argument as local_argument
from kernel_foundry_native._null import open_compiler as open_compiler
from kernel_foundry_native._null import open_device as open_device
from kernel_foundry_native._null import scalar_argument as scalar_argument
