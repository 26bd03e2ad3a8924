// What calls left on the stacks of this process's threads, below the frames in use.
#pragma once

namespace kernel_foundry {

// Overwrites it with zeros; every other thread is held meanwhile. A runtime that runs kernels on
// the CPU has them on its threads' own stacks, local memory of work-groups too, and its threads
// outlive a call. No kernel may run. Throws DriverError where a thread cannot be held.
void clear_dead_stacks();

}  // namespace kernel_foundry
