// Runs a whole model in one process: every unit with memory of its own, no
// plan, no slots, no lanes. What the engine must agree with, and what the tests
// and the benchmark of the model drive.
#ifndef TROUPE_TESTS_WORKER_MODEL_MODEL_RUNNER_H_
#define TROUPE_TESTS_WORKER_MODEL_MODEL_RUNNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ops/device.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/batch.h"
#include "proto/plan/edges.h"
#include "proto/plan/sums.h"
#include "tests/worker/model/numeric.h"
#include "worker/model/build_units.h"
#include "worker/model/model_unit.h"

namespace troupe {

struct Gpt2Size {
  int layers = 2;
  int hidden = 24;
  int heads = 3;
  int intermediate = 89;
  int vocab = 61;
  int positions = 19;
  bool tied = true;
};
ModelSpec Gpt2Model(const Gpt2Size& size);

// Sizes of nothing in common, heads that do not add up to the width, and
// projections that do not lie side by side.
struct LlamaShape {
  int layers = 2;
  int hidden = 24;
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 10;
  int intermediate = 37;
  int vocab = 61;
  int positions = 19;
  bool tied = false;
  bool bias = false;  // of attention and MLP
};
ModelSpec LlamaModel(const LlamaShape& shape);
// Routers' biases do not move: in the place of their gradients lie counts,
// which are none of a loss.
ModelSpec WithBiasesHeld(ModelSpec model);
// Of that shape, but its biases, which the architecture decides.
ModelSpec LlamaRelativeModel(const std::string& architecture,
                             const LlamaShape& shape);

// Heads of 8 columns, of which 4 turn. `options`: the other form of what it has
// two of.
struct GptNeoxShape {
  int layers = 2;
  int hidden = 24;
  int heads = 3;
  int intermediate = 89;
  int vocab = 61;
  int positions = 19;
  bool tied = false;
  bool options = false;
};
ModelSpec GptNeoxModel(const GptNeoxShape& shape);

// Every architecture that computes: "gpt2", "llama", ...
std::vector<std::string> ModelNames();
// A model of that architecture, of sizes of nothing in common.
struct CommonShape {
  int positions = 19;
  bool tied = false;
};
ModelSpec ModelNamed(const std::string& architecture, const CommonShape& shape);
// One block, whose every element a test can afford to change.
ModelSpec TinyModelNamed(const std::string& architecture, bool tied);

// AdamW with torch's defaults for what is not given.
struct AdamWSettings {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
};
OptimizerSpec AdamWSpec(const AdamWSettings& settings);

// In bf16 and fp16, `parameters` below are the f32 master weights.
class ModelRunner {
 public:
  struct Training {
    std::vector<std::string> freeze = {};  // as training.freeze of a job
    // What Step gets; resolved, and only its groups matter.
    OptimizerSpec optimizer = {};
    int64_t loss_chunk_tokens = 0;  // as memory.loss_chunk_tokens
  };
  ModelRunner(Device& device, const ModelSpec& model,
              const BuildUnitsOptions& options)
      : ModelRunner(device, model, options, Training()) {}
  ModelRunner(Device& device, const ModelSpec& model,
              const BuildUnitsOptions& options, const Training& trained);

  void Initialize(uint64_t seed);
  // After `parameters` were written: what the model computes with follows them.
  void Round();
  // One micro-batch: tokens, then targets. Forward, and where the context says
  // training also backward, which adds to the gradients.
  void Run(const int32_t* batch, const MicroBatchContext& context);
  void Forward(const int32_t* batch, const MicroBatchContext& context);
  void Backward(const int32_t* batch, const MicroBatchContext& context);
  // The same of one unit at a time, so that its parameters may be set before.
  void ForwardUnit(int unit, const int32_t* batch,
                   const MicroBatchContext& context);
  void BackwardUnit(int unit, const int32_t* batch,
                    const MicroBatchContext& context);

  // Clips, steps what is trained, leaves the gradients zero; returns the norm
  // before clipping.
  double Step(const OptimizerSpec& optimizer, int64_t step, double clip);

  int units() const { return static_cast<int>(specs_.size()); }
  const std::vector<Unit>& specs() const { return specs_; }
  absl::Span<float> parameters(int unit) { return parameters_[unit].span(); }
  absl::Span<float> gradients(int unit) { return gradients_[unit].span(); }
  // What the model computes with.
  std::vector<void*> parameter_buffers() const;
  // By Hugging Face's name. Gradients of frozen parameters stay zero.
  absl::Span<float> parameter(const std::string& name);
  absl::Span<float> gradient(const std::string& name);
  // Of the model, not of its modules: [rows, vocab], after a forward outside of
  // training.
  std::vector<float> Logits() const;
  const Sums& sums() const { return sums_; }
  const ModelSpec& model() const { return model_; }
  absl::Span<const float> stash(int unit) const { return stash_[unit].span(); }
  double* scalars() { return scalars_.data(); }

 private:
  bool rounds() const { return options_.shape.dtype != F32; }
  void* computed(int unit) const {
    return (rounds() ? rounded_ : parameters_)[unit].get();
  }
  UnitBuffers Buffers(int unit, const int32_t* batch);
  // As the units' schema has it.
  void FillBatch(const int32_t* tokens_and_targets);
  // Its segments that are of a chunk of rows, or of none: 0.
  void BackwardChunk(int unit, int chunk, const UnitBuffers& buffers,
                     MicroBatchContext context);

  Device& device_;
  const ModelSpec model_;
  const BuildUnitsOptions options_;
  std::vector<Unit> specs_;
  std::vector<std::unique_ptr<ModelUnit>> units_;
  std::vector<UnitTable> tables_;
  BatchSchema schema_;
  std::vector<int32_t> batch_;
  Sums sums_;
  std::vector<DeviceMemory> parameters_, rounded_, gradients_, state_, stash_,
      weight_stash_, segment_, segment_gradient_;
  std::vector<Edge> edges_;
  // By unit and output; of outputs that are the same value, the first has it.
  std::map<std::pair<int, int>, DeviceMemory> activations_;
  std::map<std::pair<int, int>, DeviceMemory> activation_gradients_;
  std::unique_ptr<DeviceMemory> workspace_;
  std::vector<double> scalars_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_MODEL_MODEL_RUNNER_H_
