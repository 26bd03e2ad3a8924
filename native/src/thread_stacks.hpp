// Clears the data that calls left on the stacks of this process's threads, below the frames in use.
#pragma once

namespace kernel_foundry {

// Fills the dead part of every stack with a random byte, another for each call, and holds all other
// threads meanwhile. A runtime that runs kernels on the CPU keeps their private and local memory on
// the stacks of its threads, and these threads outlive a call. No kernel may run at the time.
// Throws DriverError if a thread cannot be held.
//
// It also restores the memory above all frames of the process's first thread (its arguments, the
// environment) to its state when `remember_stack_top` was first called.
void clear_dead_stacks();

// Copies the memory above the first thread's frames. To be called before the first kernel runs.
void remember_stack_top();

}  // namespace kernel_foundry
