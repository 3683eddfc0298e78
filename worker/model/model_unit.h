// A unit of the plan that computes: what FORWARD, BACKWARD_INPUT and
// BACKWARD_WEIGHT of a program do. docs/plan.md says which buffers each of them
// reads and writes; the engine hands exactly those over, as bare memory:
//
//   const auto& unit = *units[instruction.unit()];
//   unit.Forward(device, {.step = step, .first_sample = first, ...},
//                {.batch = batch, .output = activation, .stash = stash, ...});
//
// A unit owns no memory and keeps no state between calls: parameters may come
// from another place each time (offload, weight versions), micro-batches may be
// interleaved in any order, and a forward may be repeated bit for bit
// (recomputation). Wrong pointers are our bugs; nothing here can fail.
//
// Thread rule: const, so any threads at any time; one Device each, or one for
// all (ops/device.h).
#ifndef TROUPE_WORKER_MODEL_MODEL_UNIT_H_
#define TROUPE_WORKER_MODEL_MODEL_UNIT_H_

#include <cstdint>

#include "ops/device.h"
#include "proto/plan.pb.h"

namespace troupe {

// The micro-batch that a call works on.
struct MicroBatchContext {
  int64_t step = 0;          // picks the dropout masks; the first is 1
  int64_t first_sample = 0;  // place of its first sequence in the global batch
  bool training = false;     // false: no dropout, and no gradient of the loss
  // 1 / tokens of the step, over all ranks and micro-batches: gradients of the
  // micro-batches then add up to that of the mean loss.
  double gradient_scale = 1.0;
  // Parameter gradients hold zeros, as nothing of the step was added to them
  // yet. Then the products that make up most of them need not read them first.
  bool gradients_are_zero = false;
};

// Memory of the buffers of docs/plan.md, each aligned to Device::kAlignment and
// of the bytes that the plan gives; null where the table does not list it or
// where it has no bytes. Sizes: those of the unit's micro-batch shape, [b, t].
struct UnitBuffers {
  const int32_t* batch = nullptr;   // BATCH: tokens [b, t], targets [b, t]
  void* input = nullptr;            // ACTIVATION of the unit before
  void* output = nullptr;           // ACTIVATION
  void* stash = nullptr;            // STASH
  void* output_gradient = nullptr;  // GRADIENT; read, kept as it is
  void* input_gradient = nullptr;  // GRADIENT of the unit before; scratch first
  void* weight_stash = nullptr;    // WEIGHT_STASH
  void* workspace = nullptr;       // WORKSPACE
  void* parameters = nullptr;      // flat buffers, this unit's
  void* tied_parameters = nullptr;           // of the unit that it is tied to
  void* parameter_gradients = nullptr;       // added to
  void* tied_parameter_gradients = nullptr;  // added to
  // SCALARS: the head's Forward adds the loss sum to [0] and the number of
  // counted targets to [1].
  double* scalars = nullptr;
};

// New positions of one sequence, for generation: reads and appends to the keys
// and values of the positions before.
struct DecodeBuffers {
  int64_t position = 0;             // of the first new token
  int64_t count = 0;                // of new tokens, at most kDecodeTokensMax
  const int32_t* tokens = nullptr;  // embedding: [count]
  void* input = nullptr;            // all others: [count, hidden]
  void* output = nullptr;     // written; head: logits of the last, [vocab]
  void* cache = nullptr;      // CacheBytes
  void* workspace = nullptr;  // DecodeWorkspaceBytes
  void* parameters = nullptr;
  void* tied_parameters = nullptr;
};

class ModelUnit {
 public:
  static constexpr int64_t kDecodeTokensMax = 64;

  ModelUnit() = default;
  ModelUnit(const ModelUnit&) = delete;
  ModelUnit& operator=(const ModelUnit&) = delete;
  virtual ~ModelUnit() = default;

  virtual const Unit& spec() const = 0;

  virtual void Forward(Device& device, const MicroBatchContext& context,
                       const UnitBuffers& buffers) const = 0;
  // The embedding has none, and must not be asked.
  virtual void BackwardInput(Device& device, const MicroBatchContext& context,
                             const UnitBuffers& buffers) const = 0;
  virtual void BackwardWeight(Device& device, const MicroBatchContext& context,
                              const UnitBuffers& buffers) const = 0;

  // Keys and values of `positions` positions of one sequence; 0 for most units.
  virtual int64_t CacheBytes(int64_t positions) const = 0;
  // For count = kDecodeTokensMax.
  virtual int64_t DecodeWorkspaceBytes() const = 0;
  // Never any dropout. `positions` is what the cache was made for.
  virtual void Decode(Device& device, int64_t positions,
                      const DecodeBuffers& buffers) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_MODEL_UNIT_H_
