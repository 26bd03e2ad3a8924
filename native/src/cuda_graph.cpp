#include "cuda_graph.hpp"

#include <utility>

#include "error.hpp"

namespace kernel_foundry {
namespace {

using cuda::check;
using cuda::driver;

class CudaGraph final : public Graph {
 public:
  CudaGraph(cuda::SharedContext context, cuda::UniqueGraphExec exec, cuda::Stream stream)
      : context_(std::move(context)), exec_(std::move(exec)), stream_(stream) {}
  void launch() override {
    context_->make_current();
    cuda::check_launch(driver().graph_launch(exec_.get(), stream_), "cuGraphLaunch");
  }

 private:
  cuda::SharedContext context_;
  cuda::UniqueGraphExec exec_;
  cuda::Stream stream_;
};

// The stream records from construction to `end`, at the latest until this is gone.
class Recording {
 public:
  Recording(cuda::SharedContext context, cuda::Stream stream)
      : context_(std::move(context)), stream_(stream) {
    // Relaxed: a kernel's first launch may still set an attribute of it.
    check(driver().stream_begin_capture(stream_, cuda::stream_capture_mode_relaxed),
          "cuStreamBeginCapture");
    is_on_ = true;
  }
  ~Recording() { [[maybe_unused]] const cuda::UniqueGraph dropped = end(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Empty when something was enqueued that cannot be recorded.
  [[nodiscard]] cuda::UniqueGraph end() noexcept {
    cuda::Graph graph = nullptr;
    if (std::exchange(is_on_, false)) driver().stream_end_capture(stream_, &graph);
    return {context_, graph};
  }

 private:
  cuda::SharedContext context_;
  cuda::Stream stream_;
  bool is_on_ = false;
};

}  // namespace

std::unique_ptr<Graph> capture_cuda(const cuda::SharedContext& context, cuda::Stream stream,
                                    const std::function<void()>& enqueue) {
  Recording recording(context, stream);
  try {
    enqueue();
  } catch (const NativeError&) {
    return nullptr;  // the run without a graph says what it is
  }
  const cuda::UniqueGraph graph = recording.end();
  if (!graph) return nullptr;
  cuda::GraphExec exec = nullptr;
  if (driver().graph_instantiate(&exec, graph.get(), 0) != cuda::success) return nullptr;
  return std::make_unique<CudaGraph>(context, cuda::UniqueGraphExec(context, exec), stream);
}

}  // namespace kernel_foundry
