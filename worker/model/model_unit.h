// A unit of the plan that computes: what FORWARD, RECOMPUTE, BACKWARD_INPUT and
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
#include "worker/layers/flat_memory.h"
#include "worker/layers/micro_batch_context.h"
#include "worker/layers/port_memory.h"

namespace troupe {

// Memory of the buffers of docs/plan.md, each aligned to Device::kAlignment and
// of the bytes that the plan gives; null where the table does not list it or
// where it has no bytes. Sizes: those of the unit's micro-batch shape, [b, t].
struct UnitBuffers {
  const void* batch = nullptr;          // BATCH: as Plan.batch says
  PortMemory input;                     // ACTIVATIONs of earlier units
  PortMemory output;                    // ACTIVATION
  void* stash = nullptr;                // STASH
  PortMemory output_gradient;           // GRADIENT; read, kept as it is
  PortMemory input_gradient;            // GRADIENTs of earlier units
  void* weight_stash = nullptr;         // WEIGHT_STASH
  void* workspace = nullptr;            // WORKSPACE
  void* segment = nullptr;              // SEGMENT_VALUES
  void* segment_gradient = nullptr;     // SEGMENT_GRADIENTS
  void* recomputed = nullptr;           // RECOMPUTED
  FlatMemory parameters = {};           // flat buffers, this unit's
  FlatMemory tied_parameters = {};      // of the unit that it is tied to
  FlatMemory parameter_gradients = {};  // added to
  FlatMemory tied_parameter_gradients = {};  // added to
  double* scalars = nullptr;  // SCALARS: Plan.sums; added to by Forward
};

class ModelUnit {
 public:
  ModelUnit() = default;
  ModelUnit(const ModelUnit&) = delete;
  ModelUnit& operator=(const ModelUnit&) = delete;
  virtual ~ModelUnit() = default;

  virtual const Unit& spec() const = 0;

  // Of one of the unit's segments, which are called in the order of the
  // program: context.segment, 0 of a unit that exchanges nothing.
  virtual void Forward(Device& device, const MicroBatchContext& context,
                       const UnitBuffers& buffers) const = 0;
  // Makes again what forward has not kept, from the same parameters and with
  // the same masks; adds to no scalars.
  virtual void Recompute(Device& device, const MicroBatchContext& context,
                         const UnitBuffers& buffers) const = 0;
  // A unit of tokens has none in its first segment unless parameters of others
  // lie between them and its output.
  virtual void BackwardInput(Device& device, const MicroBatchContext& context,
                             const UnitBuffers& buffers) const = 0;
  virtual void BackwardWeight(Device& device, const MicroBatchContext& context,
                              const UnitBuffers& buffers) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_MODEL_UNIT_H_
