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

class Generator {
 public:
  // `parameters` are the flat buffers of ModelUnits(model), in order, on the
  // device, of `dtype` (F32 or BF16), in which everything but the choice of a
  // token is then computed; borrowed, as the device is. InvalidArgument for a
  // model that cannot be; ResourceExhausted when there is no memory for the
  // cache.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(
      Device& device, const ModelSpec& model,
      const std::vector<void*>& parameters, ElementType dtype = F32);
  ~Generator();

  // Forgets all and reads the prompt. InvalidArgument when it is empty or holds
  // a token that is not in the vocabulary (the message names it and its place).
  absl::Status Start(absl::Span<const int32_t> prompt,
                     const GenerateOptions& options);
  // Draws the next token and appends it. REQUIRES Start.
  absl::StatusOr<int32_t> Next();

  // Of the token that Next will draw, on the host, [vocab_size].
  const std::vector<float>& logits() const { return logits_; }

 private:
  struct Memory;
  Generator(Device& device, const ModelSpec& model,
            const std::vector<void*>& parameters, ElementType dtype);

  absl::Status Allocate();
  // Of the last token that was read, into logits_.
  absl::Status ReadLogits();
  // Runs text_[cached_, ...) through the model, restarting where it is full.
  absl::Status Extend();
  void DecodeChunk(int64_t count);

  Device& device_;
  const ModelSpec model_;
  const int64_t context_;                // tokens that the model sees at most
  const std::vector<void*> parameters_;  // by unit
  std::vector<void*> tied_parameters_;   // by unit; null: not tied
  const DType dtype_;                    // of parameters and activations
  std::vector<std::unique_ptr<DecodingUnit>> units_;
  std::unique_ptr<Memory> memory_;
  GenerateOptions options_;
  std::vector<int32_t> text_;  // that the cache holds or is about to
  int64_t cached_ = 0;
  int64_t drawn_ = 0;
  std::vector<float> logits_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_GENERATOR_H_
