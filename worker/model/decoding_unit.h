// A unit when text is generated: its forward pass for a few new positions of
// one sequence, with the keys and values of the positions before cached.
//
//   ASSIGN_OR_RETURN(auto unit, DecodingUnit::Create(units, u));
//   cache = Allocate(unit->CacheBytes(positions)), ...
//   RETURN_IF_ERROR(
//       unit->Decode(device, positions, {.position = 0, .count = 5, ...}));
//
// A unit that is cut over ranks computes its part; where its table has an
// EXCHANGE, the peers do that.
//
// Owns no memory and keeps no state between calls. Thread rule: const.
#ifndef TROUPE_WORKER_MODEL_DECODING_UNIT_H_
#define TROUPE_WORKER_MODEL_DECODING_UNIT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan/slices.h"
#include "proto/plan/unit_list.h"
#include "worker/layers/flat_memory.h"
#include "worker/layers/layer.h"
#include "worker/layers/operand_place.h"
#include "worker/model/decoding_peers.h"

namespace troupe {

struct DecodeBuffers {
  int64_t position = 0;             // of the first new token
  int64_t count = 0;                // of new tokens, at most kDecodeTokensMax
  const int32_t* tokens = nullptr;  // embedding: [count]
  void* input = nullptr;            // all others: [count, hidden]
  void* output = nullptr;     // written; head: logits of the last, [vocab]
  void* cache = nullptr;      // CacheBytes
  void* workspace = nullptr;  // workspace_bytes
  FlatMemory parameters = {};
  FlatMemory tied_parameters = {};
  DecodingPeers* peers = nullptr;  // null: the table exchanges nothing
};

class DecodingUnit {
 public:
  static constexpr int64_t kDecodeTokensMax = 64;

  // The unit `index` of a model without dropout, whatever its micro-batch's
  // shape, as the rank at `place` has it. InvalidArgument where the unit has no
  // ops, and as BuildUnits.
  static absl::StatusOr<std::unique_ptr<DecodingUnit>> Create(
      const UnitList& units, int index, const MeshPlace& place = {});

  // Of keys and values of `positions` positions; 0 for most units.
  int64_t CacheBytes(int64_t positions) const;
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // Of what it makes.
  DType dtype() const { return dtype_; }

  // `positions` is what the cache was made for. Errors are the peers'.
  absl::Status Decode(Device& device, int64_t positions,
                      const DecodeBuffers& buffers) const;

 private:
  // Done by the peers, in place of a layer.
  struct Exchange {
    Op::Exchange spec;
    OperandPlace x;
    OperandPlace y;
  };

  DecodingUnit() = default;

  // InvalidArgument where ops read something else of the batch.
  absl::Status FindTokens(const UnitList& units, const UnitTable& table);

  std::vector<std::unique_ptr<Layer>> layers_;       // by op
  std::vector<absl::optional<Exchange>> exchanges_;  // by op
  int64_t rows_max_ = 0;  // of new positions that it looks at, the last ones
  int64_t input_row_bytes_ = 0;
  std::vector<int> token_ports_;  // of what it reads of the batch
  int64_t workspace_bytes_ = 0;
  DType dtype_ = DType::kF32;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_DECODING_UNIT_H_
