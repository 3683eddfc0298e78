// The batch of a plan: the schema of named tensors that LOAD_BATCH makes of the
// job's data for each micro-batch. They lie in BATCH, one behind the other.
#ifndef TROUPE_PROTO_PLAN_BATCH_H_
#define TROUPE_PROTO_PLAN_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "proto/plan.pb.h"
#include "proto/plan/layout.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/slices.h"
#include "proto/unit.pb.h"

namespace troupe {

using BatchSchema = google::protobuf::RepeatedPtrField<BatchTensor>;

// Null where there is none of that name.
const BatchTensor* FindBatchTensor(const BatchSchema& batch,
                                   absl::string_view name);

// By tensor of the schema, its first byte in BATCH; the last: the bytes of all.
std::vector<int64_t> BatchOffsets(const BatchSchema& batch);
// By port of a table (proto/plan/ports.h). REQUIRES what it reads to be there.
std::vector<int64_t> BatchOffsets(const BatchSchema& batch,
                                  const UnitTable& table);
// Of the buffer BATCH.
int64_t BatchBytes(const Plan& plan);
// Where in its buffer a tensor of the table lies: those of the batch share one.
int64_t OffsetInBuffer(const Plan& plan, const UnitTable& table,
                       const TensorPlace& place);

// Whether a unit reads any of it.
bool ReadsBatch(const Plan& plan, const Unit& unit);

// By tensor of the schema: whether a unit of the rank's stages reads it. Others
// are not loaded. Its place in BATCH is that of all ranks.
std::vector<bool> LoadedTensors(const Plan& plan, int rank);

// What a rank loads of a tensor: of each micro-batch these samples, and of each
// of them a box.
struct LoadedPiece {
  // One dim of a sample.
  struct OfDim {
    int64_t whole = 0;        // elements, of all ranks together
    int64_t local = 0;        // that a rank has room for
    std::vector<Range> runs;  // of the whole: as they lie
  };
  Range samples;
  std::vector<OfDim> dims;
};
LoadedPiece LoadedBy(const BatchTensor& tensor, const MeshPlace& place);

// Makes the schema as tables have it that were cut over ranks: what the first
// reader of each tensor has of it. All have the same
// (proto/plan/check_batch.h).
void LayBatch(const std::vector<UnitTable>& tables, BatchSchema& batch);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_BATCH_H_
