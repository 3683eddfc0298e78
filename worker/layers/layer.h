// One op of a unit, carried out: what a worker has for each row of
// UnitTable.ops. A layer knows from its making on where its operands and its
// parameters lie in the buffers of the unit; a call brings the buffers:
//
//   for (const auto& layer : layers) layer->Forward(call);
//
// A layer owns no memory and keeps no state between calls. Nothing is looked up
// or allocated in a call. A kind is one file; kinds.h lists them.
//
// Thread rule: const, so any threads at any time.
#ifndef TROUPE_WORKER_LAYERS_LAYER_H_
#define TROUPE_WORKER_LAYERS_LAYER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/device.h"
#include "proto/plan/place_unit.h"
#include "worker/layers/flat_memory.h"
#include "worker/layers/micro_batch_context.h"
#include "worker/layers/port_memory.h"

namespace troupe {

// New positions of one sequence, for generation.
struct DecodingCall {
  int64_t count = 0;  // of new positions, at most those of the table; 0: none
  int64_t first_position = 0;
  void* cache = nullptr;        // of this layer: CacheBytes(cache_positions)
  int64_t cache_positions = 0;  // that it was made for
};

// The pass that calls: values that are made again, or brought back, lie
// elsewhere then.
enum class UnitPass { kForward, kRecompute, kBackward };

// What all layers of a unit are called with. Wrong pointers are our bugs.
struct LayerCall {
  static constexpr size_t kMemories = kUnitMemories;

  Device& device;
  MicroBatchContext context;
  std::array<PortMemory, kMemories> memory = {};  // by UnitMemory
  UnitPass pass = UnitPass::kForward;
  FlatMemory parameters = {};                // flat buffers, this unit's
  FlatMemory tied_parameters = {};           // of the unit that it is tied to
  FlatMemory parameter_gradients = {};       // added to
  FlatMemory tied_parameter_gradients = {};  // added to
  double* scalars = nullptr;  // SCALARS: Plan.sums, added to (SumTarget)
  DecodingCall decoding = {};
};

class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  // Also of a few new positions, where the call is one of decoding.
  virtual void Forward(const LayerCall& call) const = 0;
  // Makes outputs again that were not kept, as forward did or from less
  // (OpPlaces.again).
  virtual void Recompute(const LayerCall& call) const { Forward(call); }
  // Makes the gradients of the op's inputs; many kinds have nothing to do.
  virtual void BackwardInput(const LayerCall& call) const {}
  // Adds to the gradients of its parameters.
  virtual void BackwardWeight(const LayerCall& call) const {}

  // Of what decoding keeps from one call to the next, for a text of `positions`
  // positions.
  virtual int64_t CacheBytes(int64_t positions) const { return 0; }
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_LAYER_H_
