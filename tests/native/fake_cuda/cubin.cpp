#include "cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace fake_cuda {
namespace {

template <typename T>
T read(const std::string& bytes, std::size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::optional<std::string> find_section(const std::string& cubin, const std::string& name) {
  const auto header = read<Elf64_Ehdr>(cubin, 0);
  const auto at = [&](std::size_t index) {
    return read<Elf64_Shdr>(cubin, header.e_shoff + index * header.e_shentsize);
  };
  const Elf64_Shdr names = at(header.e_shstrndx);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr section = at(i);
    if (cubin.c_str() + names.sh_offset + section.sh_name == name) {
      return cubin.substr(section.sh_offset, section.sh_size);
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_elf(const char* image) { return std::memcmp(image, ELFMAG, SELFMAG) == 0; }

std::string read_elf(const char* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  const std::size_t sections = header.e_shoff + header.e_shnum * header.e_shentsize;
  const std::size_t programs = header.e_phoff + header.e_phnum * header.e_phentsize;
  return {image, std::max(sections, programs)};
}

// Section `.nv.info.KERNEL` is a list of (format, attribute, value or size[, data]); a parameter is
// attribute 0x17 with index, ordinal, offset and, from bit 18 of a word on, its size.
std::optional<std::vector<Parameter>> find_parameters(const std::string& cubin,
                                                      const std::string& kernel) {
  constexpr std::uint8_t sized = 4;
  constexpr std::uint8_t parameter = 0x17;
  const auto info = find_section(cubin, ".nv.info." + kernel);
  if (!info) return std::nullopt;
  std::vector<Parameter> found;
  for (std::size_t at = 0; at + 4 <= info->size();) {
    const auto format = read<std::uint8_t>(*info, at);
    const auto attribute = read<std::uint8_t>(*info, at + 1);
    const std::size_t size = format == sized ? read<std::uint16_t>(*info, at + 2) : 0;
    at += 4;
    if (format == sized && attribute == parameter) {
      const auto ordinal = read<std::uint16_t>(*info, at + 4);
      if (found.size() <= ordinal) found.resize(ordinal + 1u);
      found[ordinal] = {read<std::uint16_t>(*info, at + 6),
                        read<std::uint32_t>(*info, at + 8) >> 18};
    }
    at += size;
  }
  return found;
}

}  // namespace fake_cuda
