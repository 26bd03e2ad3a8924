// Clears data that calls left on the stacks of this process's threads, below the frames in use.
#pragma once

namespace kernel_foundry {

// Fills it with a byte of its own for each call; every other thread is held meanwhile. A runtime
// that runs kernels on the CPU has them on its threads' own stacks, local memory of work-groups
// too, and its threads outlive a call. No kernel may run. Throws DriverError where a thread cannot
// be held.
//
// What lies above all frames of the process's first thread (its arguments, the environment) is as
// it was when `remember_stack_top` was first called.
void clear_dead_stacks();

// Before the first kernel runs.
void remember_stack_top();

}  // namespace kernel_foundry
