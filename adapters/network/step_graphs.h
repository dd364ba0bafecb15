#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/network/graph_engine.h"

namespace mergeplan::network {

// Forward and backward passes that are the same work in every update, but for their inputs: once a
// task has done it a few times it is taken down as a graph, and done as one launch from then on.
// The optimizer's fused operations stay outside, and with them the rate, the clipping and the look
// at the gradient's norm. One thread. All throw c10::Error where LibTorch does.
class StepGraphs {
 public:
  // Batches of a task that are done one operation after the other before the first graph: LibTorch
  // makes handles, workspaces and choices of algorithms in them.
  static constexpr int kWarmUp = 3;
  // How far gradients of the graph may be from those of the operations, in the norm and relative:
  // a device does not add twice in the same order.
  static constexpr double kTolerance = 0.01;

  // A task's loss, a single number; the same operations on the same memory for the same shapes.
  using Loss = std::function<absl::StatusOr<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

  // `parameters` are leaves that ask for gradients and stay in their memory. `note` gets a sentence
  // where graphs are given up; may be empty.
  StepGraphs(std::shared_ptr<GraphEngine> engine, std::vector<at::Tensor> parameters,
             std::size_t tasks, std::function<void(const std::string&)> note);

  // Before the batches of an update: gradients are zero, and lie where the graphs add to them.
  void Begin();
  // A batch of a task: adds weight times the gradient of its loss to the parameters' gradients and
  // returns the loss. Inputs of another shape, type, layout or device than the task's last (or one
  // more or less that is defined) begin anew. The first graph of a task is held against the
  // operations on the same inputs; where they disagree, or nothing can be taken down, there are no
  // graphs from then on. `weight` may change from call to call. A loss that is not finite leaves
  // the gradients as they were or not finite.
  absl::StatusOr<double> Run(std::size_t task, const std::vector<at::Tensor>& inputs, double weight,
                             const Loss& loss);

  // Graphs are made and used.
  bool on() const { return engine_ != nullptr; }

 private:
  // What a graph reads and writes.
  struct Buffers {
    std::vector<at::Tensor> inputs;
    at::Tensor weight, loss;
  };
  struct Place {
    int seen = 0;  // batches done without the graph
    std::shared_ptr<Buffers> buffers;
    std::unique_ptr<GraphEngine::Graph> graph;
    bool checked = false;
  };

  static bool Fits(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& own);
  static absl::StatusOr<double> ByOperations(const std::vector<at::Tensor>& inputs, double weight,
                                             const Loss& loss);
  absl::Status Capture(Place& place, const Loss& loss);
  absl::StatusOr<double> Replay(Place& place, const std::vector<at::Tensor>& inputs, double weight);
  absl::StatusOr<double> Check(Place& place, const std::vector<at::Tensor>& inputs, double weight,
                               const Loss& loss);
  void GiveUp(const std::string& why);

  std::shared_ptr<GraphEngine> engine_;  // null: given up
  std::vector<at::Tensor> parameters_, gradients_;
  std::vector<Place> places_;  // by task
  std::function<void(const std::string&)> note_;
};

}  // namespace mergeplan::network
