// Stands for CUDA's header on the host; cuda_on_host.hpp has what of it there is.
#pragma once
