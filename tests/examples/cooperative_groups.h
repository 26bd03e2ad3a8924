// Stands for CUDA's header on the host; cuda_on_host.hpp has what the examples use of it.
#pragma once
