// What the fake driver reads in a cubin, which is an ELF file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fake_cuda {

struct Parameter {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

[[nodiscard]] bool is_elf(const char* image);
// The whole file: the driver is not told the size of an image.
[[nodiscard]] std::string read_elf(const char* image);
// None: the cubin has no such kernel.
[[nodiscard]] std::optional<std::vector<Parameter>> find_parameters(const std::string& cubin,
                                                                    const std::string& kernel);

}  // namespace fake_cuda
