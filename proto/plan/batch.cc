#include "proto/plan/batch.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/mesh.h"
#include "proto/plan/packing.h"
#include "proto/plan/ports.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// Kernels read ids one by one, and numbers in vectors.
int64_t AlignedFor(const TensorSpec& tensor, int64_t bytes) {
  if (tensor.dtype() != I32) return LineAligned(bytes);
  const int64_t id = BytesOfElement(I32);
  return (bytes + id - 1) / id * id;
}

int64_t PositionIn(const BatchSchema& batch, absl::string_view name) {
  return std::find_if(batch.begin(), batch.end(),
                      [name](const BatchTensor& one) {
                        return one.tensor().name() == name;
                      }) -
         batch.begin();
}

}  // namespace

const BatchTensor* FindBatchTensor(const BatchSchema& batch,
                                   absl::string_view name) {
  const int64_t position = PositionIn(batch, name);
  return position < batch.size() ? &batch[static_cast<int>(position)] : nullptr;
}

std::vector<int64_t> BatchOffsets(const BatchSchema& batch) {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
  for (const BatchTensor& one : batch) {
    bytes = AlignedFor(one.tensor(), bytes);
    offsets.push_back(bytes);
    bytes += BytesOf(one.tensor());
  }
  offsets.push_back(bytes);
  return offsets;
}

std::vector<int64_t> BatchOffsets(const BatchSchema& batch,
                                  const UnitTable& table) {
  const std::vector<int64_t> offsets = BatchOffsets(batch);
  std::vector<int64_t> read;
  for (const int t : TensorsOfHome(table, TensorSpec::BATCH)) {
    const int64_t position = PositionIn(batch, table.tensors(t).name());
    CHECK_LT(position, batch.size())
        << "no tensor " << table.tensors(t).name() << " of the batch";
    read.push_back(offsets[position]);
  }
  return read;
}

int64_t BatchBytes(const Plan& plan) {
  return BatchOffsets(plan.batch()).back();
}

int64_t OffsetInBuffer(const Plan& plan, const UnitTable& table,
                       const TensorPlace& place) {
  if (place.memory != UnitMemory::kBatch) return place.offset_bytes;
  return BatchOffsets(plan.batch(), table).at(place.port);
}

bool ReadsBatch(const Plan& plan, const Unit& unit) {
  if (!unit.has_table()) return false;
  const auto& tensors = plan.tables(unit.table()).tensors();
  return std::any_of(tensors.begin(), tensors.end(), [](const TensorSpec& t) {
    return t.home() == TensorSpec::BATCH;
  });
}

std::vector<bool> LoadedTensors(const Plan& plan, int rank) {
  std::vector<bool> loaded(plan.batch_size(), false);
  const int place = CoordinateOn(plan.mesh(), kPipelineAxis, rank);
  for (const Stage& stage : plan.stages()) {
    const auto& places = stage.pipeline_ranks();
    if (std::count(places.begin(), places.end(), place) == 0) continue;
    for (int u = stage.unit(); u < stage.unit() + stage.unit_count(); ++u) {
      if (!ReadsBatch(plan, plan.units(u))) continue;
      const UnitTable& table = plan.tables(plan.units(u).table());
      for (const int t : TensorsOfHome(table, TensorSpec::BATCH)) {
        loaded.at(PositionIn(plan.batch(), table.tensors(t).name())) = true;
      }
    }
  }
  return loaded;
}

LoadedPiece LoadedBy(const BatchTensor& tensor, const MeshPlace& place) {
  const auto& dims = tensor.tensor().dims();
  LoadedPiece piece = {.samples = SectionPiece(dims[0].sections(0), place),
                       .dims = {}};
  for (int d = 1; d < dims.size(); ++d) {
    const Dim::Section& section = dims[d].sections(0);
    piece.dims.push_back({.whole = WholeCount(section),
                          .local = section.count(),
                          .runs = SectionRuns(section, place)});
  }
  return piece;
}

void LayBatch(const std::vector<UnitTable>& tables, BatchSchema& batch) {
  for (BatchTensor& one : batch) {
    const auto as_read = [&]() -> const TensorSpec* {
      for (const UnitTable& table : tables) {
        for (const int t : TensorsOfHome(table, TensorSpec::BATCH)) {
          if (table.tensors(t).name() == one.tensor().name()) {
            return &table.tensors(t);
          }
        }
      }
      return nullptr;
    };
    const TensorSpec* const read = as_read();
    if (read == nullptr) continue;
    *one.mutable_tensor()->mutable_dims() = read->dims();
    *one.mutable_tensor()->mutable_layout() = read->layout();
  }
}

}  // namespace troupe
