// Runs each thread of a launch as a fiber, for `cuda_on_host.hpp`: where they wait and who is next.
#include "cuda_on_host.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" void __asan_poison_memory_region(const volatile void*, std::size_t);
extern "C" void __asan_unpoison_memory_region(const volatile void*, std::size_t);

namespace host {

char* dynamic_shared = nullptr;

namespace {

constexpr std::size_t stack_bytes = 64 * 1024;
constexpr std::size_t fence_bytes = 64 * 1024;  // around a tensor; whole pages
constexpr std::size_t shared_alignment = 256;

struct Barrier {
  int expected = 0, waiting = 0;
  unsigned generation = 0;
};

struct Warp {
  Barrier barrier;
  std::uint32_t values[warpSize] = {};
};

// Dynamic shared memory of one block. Nobody has set it: it holds no number.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : whole_bytes_((bytes + shared_alignment) / shared_alignment * shared_alignment),
        data_(static_cast<char*>(std::aligned_alloc(shared_alignment, whole_bytes_))) {
    std::memset(data_, 0xff, bytes);
    __asan_poison_memory_region(data_ + bytes, whole_bytes_ - bytes);
  }
  SharedMemory(const SharedMemory&) = delete;
  ~SharedMemory() {
    __asan_unpoison_memory_region(data_, whole_bytes_);
    std::free(data_);
  }
  char* data() const { return data_; }

 private:
  std::size_t whole_bytes_;
  char* data_;
};

struct Block {
  Block(dim3 index, unsigned threads, std::size_t shared_bytes)
      : index(index), warps((threads + warpSize - 1) / warpSize), shared(shared_bytes) {}

  dim3 index;
  Barrier barrier;
  std::vector<Warp> warps;
  SharedMemory shared;
};

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  bool is_inside;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  dim3 thread;
  unsigned lane = 0;
  Block* block = nullptr;
  Warp* warp = nullptr;
  bool is_done = false;
  Barrier* awaited = nullptr;  // with the generation that it had when this fiber met it
  unsigned awaited_generation = 0;
  std::vector<Copy> open;                // copies of the group that is not committed
  std::deque<std::vector<Copy>> groups;  // committed groups that nobody has waited for
};

ucontext_t scheduler;
Fiber* current = nullptr;
void (*body)(const void*) = nullptr;
const void* body_of = nullptr;
Barrier grid_barrier;
bool is_cooperative = false;

[[noreturn]] void fail(const char* message) {
  std::fprintf(stderr, "on host: %s (block %u,%u,%u)\n", message, blockIdx.x, blockIdx.y,
               blockIdx.z);
  std::exit(3);
}

void release_when_complete(Barrier& barrier) {
  if (barrier.waiting == 0 || barrier.waiting < barrier.expected) return;
  barrier.waiting = 0;
  ++barrier.generation;
}

void wait(Barrier& barrier) {
  current->awaited = &barrier;
  current->awaited_generation = barrier.generation;
  ++barrier.waiting;
  release_when_complete(barrier);
  if (barrier.generation == current->awaited_generation) {
    swapcontext(&current->context, &scheduler);
  }
}

bool can_run(const Fiber& fiber) {
  return !fiber.is_done &&
         (fiber.awaited == nullptr || fiber.awaited->generation != fiber.awaited_generation);
}

void run_fiber() {
  body(body_of);
  current->is_done = true;
  for (Barrier* barrier : {&current->warp->barrier, &current->block->barrier, &grid_barrier}) {
    --barrier->expected;
    release_when_complete(*barrier);
  }
}

void start(Fiber& fiber, Block& block, unsigned number) {
  fiber.thread = {number % blockDim.x, number / blockDim.x % blockDim.y,
                  number / (blockDim.x * blockDim.y)};
  fiber.lane = number % warpSize;
  fiber.block = &block;
  fiber.warp = &block.warps[number / warpSize];
  fiber.is_done = false;
  fiber.awaited = nullptr;
  fiber.open.clear();
  fiber.groups.clear();
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes;
  fiber.context.uc_link = &scheduler;
  makecontext(&fiber.context, run_fiber, 0);
  for (Barrier* barrier : {&fiber.warp->barrier, &block.barrier, &grid_barrier}) {
    ++barrier->expected;
  }
}

void resume(Fiber& fiber) {
  current = &fiber;
  threadIdx = fiber.thread;
  blockIdx = fiber.block->index;
  dynamic_shared = fiber.block->shared.data();
  swapcontext(&scheduler, &fiber.context);
}

void run_until_done(std::vector<Fiber>& fibers) {
  for (std::size_t done = 0; done < fibers.size();) {
    bool has_progressed = false;
    for (Fiber& fiber : fibers) {
      if (!can_run(fiber)) continue;
      resume(fiber);
      has_progressed = true;
      done += fiber.is_done;
    }
    if (!has_progressed) fail("deadlock: not every thread reaches a barrier");
  }
}

}  // namespace

void launch(dim3 grid, dim3 block, std::size_t shared_bytes, bool cooperative,
            void (*call)(const void*), const void* kernel) {
  const unsigned blocks = grid.x * grid.y * grid.z, threads = block.x * block.y * block.z;
  const unsigned together = cooperative ? blocks : 1;
  std::vector<Fiber> fibers(threads * together);
  body = call;
  body_of = kernel;
  is_cooperative = cooperative;
  gridDim = grid;
  blockDim = block;
  for (unsigned first = 0; first < blocks; first += together) {
    std::deque<Block> running;
    grid_barrier = {};
    for (unsigned i = 0; i < fibers.size(); ++i) {
      const unsigned number = first + i / threads;
      if (i % threads == 0) {
        const dim3 index{number % grid.x, number / grid.x % grid.y, number / (grid.x * grid.y)};
        running.emplace_back(index, threads, shared_bytes);
      }
      start(fibers[i], running.back(), i % threads);
    }
    run_until_done(fibers);
  }
}

void wait_for_warp() { wait(current->warp->barrier); }
void wait_for_block() { wait(current->block->barrier); }
void wait_for_grid() {
  if (!is_cooperative) fail("a grid barrier in a launch that is not cooperative");
  wait(grid_barrier);
}

unsigned lane() { return current->lane; }

std::uint32_t exchange(std::uint32_t value, unsigned from) {
  Warp& warp = *current->warp;
  warp.values[current->lane] = value;
  wait(warp.barrier);
  const std::uint32_t result = warp.values[from];
  wait(warp.barrier);
  return result;
}

void copy_later(void* to, const void* from, std::size_t bytes, bool is_inside) {
  current->open.push_back({to, from, bytes, is_inside});
}

void commit_copies() {
  current->groups.push_back(std::move(current->open));
  current->open.clear();
}

void finish_copies(std::size_t all_but) {
  while (current->groups.size() > all_but) {
    for (const Copy& copy : current->groups.front()) {
      if (copy.is_inside)
        std::memcpy(copy.to, copy.from, copy.bytes);
      else
        std::memset(copy.to, 0, copy.bytes);
    }
    current->groups.pop_front();
  }
}

Buffer::Buffer(const char* path) {
  const int file = open(path, O_RDWR);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) fail(path);
  bytes_ = status.st_size;
  const std::size_t whole = (bytes_ + fence_bytes - 1) / fence_bytes * fence_bytes;
  void* room =
      mmap(nullptr, whole + 2 * fence_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) fail("no address space");
  data_ = static_cast<char*>(room) + fence_bytes;
  if (mmap(data_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != data_) {
    fail(path);
  }
  close(file);
  __asan_poison_memory_region(data_ - fence_bytes, fence_bytes);
  __asan_poison_memory_region(data_ + bytes_, whole - bytes_ + fence_bytes);
}

}  // namespace host
