#include "shared_buffer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "error.hpp"

namespace kernel_foundry {
namespace {

[[noreturn]] void fail(const char* call) {
  const int error = errno;
  const std::string text = std::string(call) + ": " + std::strerror(error);
  // A limit on the size of files stands for one of shared memory; ENOSPC is a full tmpfs.
  if (error == ENOMEM || error == ENOSPC || error == EFBIG) throw OutOfMemoryError(text);
  throw DriverError(text);
}

}  // namespace

SharedBuffer::SharedBuffer(int fd, std::size_t size_bytes, bool read_only)
    : fd_(fd), size_bytes_(size_bytes), read_only_(read_only) {
  const int protection = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  try {
    mapping_ = std::make_unique<GuardedMapping>(size_bytes, protection, MAP_SHARED, fd);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

std::unique_ptr<SharedBuffer> SharedBuffer::create(std::size_t size_bytes) {
  const int fd = memfd_create("kernel_foundry", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) fail("memfd_create");
  if (ftruncate(fd, static_cast<off_t>(size_bytes == 0 ? 1 : size_bytes)) != 0 ||
      // A process that truncated a shared buffer would kill the other one with SIGBUS.
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
    fail("memfd");
  }
  return std::unique_ptr<SharedBuffer>(new SharedBuffer(fd, size_bytes, false));
}

std::unique_ptr<SharedBuffer> SharedBuffer::open(int fd, std::size_t size_bytes, bool read_only) {
  struct stat facts{};
  if (fstat(fd, &facts) != 0) fail("fstat");
  if (static_cast<std::size_t>(facts.st_size) < size_bytes) {
    throw DriverError("the shared buffer has " + std::to_string(facts.st_size) +
                      " bytes, expected " + std::to_string(size_bytes));
  }
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) fail("dup");
  return std::unique_ptr<SharedBuffer>(new SharedBuffer(own, size_bytes, read_only));
}

SharedBuffer::~SharedBuffer() { close(); }

void SharedBuffer::close() noexcept {
  if (!mapping_) return;
  mapping_.reset();
  ::close(fd_);
  fd_ = -1;
}

}  // namespace kernel_foundry
