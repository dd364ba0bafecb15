#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/cuda/graph_module.h"
#include "adapters/network/graph_engine.h"
#include "adapters/network/try.h"

namespace mergeplan::network {
namespace {

constexpr char kModule[] = "mergeplan-graph.so";

class CudaGraph : public GraphEngine::Graph {
 public:
  CudaGraph(const GraphFunctions& functions, void* graph) : functions_(functions), graph_(graph) {}
  ~CudaGraph() override { functions_.drop(graph_); }
  absl::Status Replay() override {
    if (functions_.replay(graph_) == 0) return absl::OkStatus();
    char words[512] = "";
    functions_.describe(words, sizeof words);
    return absl::UnavailableError(absl::StrCat("a CUDA graph is not replayed: ", words));
  }

 private:
  const GraphFunctions& functions_;
  void* const graph_;
};

class CudaGraphs : public GraphEngine {
 public:
  CudaGraphs(const GraphFunctions& functions, int device)
      : functions_(functions), device_(device) {}

  absl::StatusOr<std::unique_ptr<Graph>> Capture(
      const std::function<absl::Status()>& work) override {
    void* const capture = functions_.begin(device_);
    if (capture == nullptr) return Refused();
    const absl::Status done = Try("the capture", work);
    void* const graph = functions_.end(capture, done.ok() ? 1 : 0);
    if (!done.ok()) return done;
    if (graph == nullptr) return Refused();
    return std::make_unique<CudaGraph>(functions_, graph);
  }

 private:
  absl::Status Refused() const {
    char words[512] = "";
    functions_.describe(words, sizeof words);
    const std::string text = words;
    return absl::UnavailableError(absl::StrCat("the capture: ", text.substr(0, text.find('\n'))));
  }

  const GraphFunctions& functions_;
  const int device_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<GraphEngine>> OpenCudaGraphs(int device) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  void* const library = ::dlopen((self.parent_path() / kModule).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError(::dlerror());
  const auto open = reinterpret_cast<GraphOpen>(::dlsym(library, kGraphOpenSymbol));
  if (open == nullptr) {
    return absl::UnavailableError(absl::StrCat(kModule, " lacks ", kGraphOpenSymbol));
  }
  return std::make_shared<CudaGraphs>(*open(), device);
}

}  // namespace mergeplan::network
