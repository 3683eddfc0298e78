// Continues a text, token by token, with the keys and values of all earlier
// positions cached.
//
//   ASSIGN_OR_RETURN(auto generator, Generator::Create(device, model, flat));
//   RETURN_IF_ERROR(generator->Start(prompt, {.temperature = 0.8, .top_k =
//   40})); while (...) { ASSIGN_OR_RETURN(int32_t token, generator->Next());
//   ... }
//
// A model sees at most its longest sequence (LongestSequenceOf). When it is
// full, the generator forgets the older half of the text: the last half of the
// context is run through the model again from position 0, and generation goes
// on from there. A longer prompt is cut to its last half context in the same
// way.
//
// Token n (0 the first) of a seed depends on nothing but the text before it and
// (seed, n). One thread at a time.
//
// Of a model that is cut over ranks each has a generator with its part of it
// (ModelPart). All are started with the same prompt and asked for the same
// tokens, so that they go in step: ranks along the pipeline hand on what they
// have made of some positions, and the token, drawn where the logits are, goes
// to all.
#ifndef TROUPE_WORKER_MODEL_GENERATOR_H_
#define TROUPE_WORKER_MODEL_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan/slices.h"
#include "proto/plan/unit_list.h"
#include "worker/layers/flat_memory.h"
#include "worker/model/decoding_peers.h"
#include "worker/model/decoding_unit.h"

namespace troupe {

struct GenerateOptions {
  double temperature = 1.0;  // 0: always the most likely token
  int top_k = 0;             // only among the k most likely; 0: among all
  uint64_t seed = 0;
  // Where a text is read in several parts: asked between them; an error ends
  // Start or Next, and is returned.
  std::function<absl::Status()> go_on = nullptr;
};

// Units in a row: [begin, end).
struct UnitRun {
  int begin = 0;
  int end = 0;
};

// The flat buffers that a unit computes with, on the device: its own, and that
// of the unit that it is tied to.
struct UnitWeights {
  FlatMemory own;
  FlatMemory tied;
};

// What a rank has of a model.
struct ModelPart {
  bool has_logits() const {
    return runs.back().end == static_cast<int>(units.units.size());
  }

  // The whole model's, as they are cut for this rank.
  UnitList units;
  // Those that it runs, ascending; between two runs others do. One at least.
  std::vector<UnitRun> runs;
  // By unit; of those that it runs.
  std::vector<UnitWeights> weights;
  MeshPlace place;
  DecodingPeers* peers = nullptr;  // null: it has all
  // That are cached at once, at most; 0: as many as the model can see.
  int64_t positions = 0;
};

// Where the flat buffers of units lie, by unit: null for those that are neither
// run nor tied to one that is.
std::vector<UnitWeights> WeightsAt(const std::vector<Unit>& units,
                                   const std::vector<void*>& flat);

class Generator {
 public:
  // The dtype of the weights (F32 or BF16) is the one in which everything but
  // the choice of a token is computed. Device, weights and peers are borrowed.
  // InvalidArgument for a model that cannot be; ResourceExhausted when there is
  // no memory for the cache.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(
      Device& device, const ModelSpec& model, ModelPart part);
  // With the whole model, as ModelUnits lists it, in `dtype`.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(
      Device& device, const ModelSpec& model,
      const std::vector<void*>& parameters, ElementType dtype = F32);
  ~Generator();

  // Forgets all and reads the prompt. InvalidArgument when it is empty or holds
  // a token that is not in the vocabulary (the message names it and its place).
  absl::Status Start(absl::Span<const int32_t> prompt,
                     const GenerateOptions& options);
  // Draws the next token and appends it. REQUIRES Start. After an error of the
  // peers, here or in Start, the generator is of no more use.
  absl::StatusOr<int32_t> Next();

  // Of the token that Next will draw, on the host, [vocab_size]; of a part
  // without them, zeros.
  const std::vector<float>& logits() const { return logits_; }

 private:
  struct Memory;
  Generator(Device& device, const ModelSpec& model, ModelPart part,
            DType dtype);

  absl::Status Allocate();
  // Of the last token that was read, into logits_.
  absl::Status ReadLogits();
  // Runs text_[cached_, ...) through the model, restarting where it is full.
  absl::Status Extend();
  absl::Status DecodeChunk(int64_t count);
  // Unit `index` of those that the rank runs, which is `unit` of the model.
  absl::Status DecodeUnit(int index, int unit, int64_t count);
  int32_t Sample() const;

  Device& device_;
  const ModelSpec model_;
  const ModelPart part_;
  const int64_t context_;  // tokens that the model sees at most
  const DType dtype_;      // of parameters and activations
  std::vector<std::unique_ptr<DecodingUnit>> units_;  // the part's, in order
  std::unique_ptr<Memory> memory_;
  GenerateOptions options_;
  std::vector<int32_t> text_;  // that the cache holds or is about to
  int64_t cached_ = 0;
  int64_t drawn_ = 0;
  std::vector<float> logits_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_GENERATOR_H_
