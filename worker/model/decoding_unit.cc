#include "worker/model/decoding_unit.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/batch.h"
#include "proto/plan/batch_sources.h"
#include "proto/plan/decoding_table.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/ports.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/element_dtype.h"
#include "worker/layers/new_layers.h"

namespace troupe {
namespace {

// Caches of a unit's layers lie one behind another.
int64_t AlignedCacheBytes(const Layer& layer, int64_t positions) {
  return (layer.CacheBytes(positions) + kCacheLineBytes - 1) / kCacheLineBytes *
         kCacheLineBytes;
}

bool IsRead(const UnitTable& table, int tensor) {
  for (const Op& op : table.ops()) {
    for (const Op::Operand& input : op.inputs()) {
      if (input.tensor() == tensor) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DecodingUnit>> DecodingUnit::Create(
    const UnitList& units, int index, const MeshPlace& place) {
  const Unit& unit = units.units[index];
  if (!unit.has_table()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unit ", index, " computes nothing: a ", Unit::Kind_Name(unit.kind()),
        " unit has no text to go on with"));
  }
  const UnitTable table =
      DecodingTable(units.tables[unit.table()], kDecodeTokensMax);
  const UnitPlaces places = PlaceUnit(table, UnitUse::kDecoding);
  auto decoding = absl::WrapUnique(new DecodingUnit());
  const UnitBinding binding = {.table = table,
                               .places = places,
                               .unit = unit,
                               .units = units.units,
                               .place = place};
  ASSIGN_OR_RETURN(decoding->layers_, NewLayers(binding));
  decoding->exchanges_.resize(table.ops_size());
  for (int i = 0; i < table.ops_size(); ++i) {
    const OpBinding op(binding, i);
    if (op.op().exchange().forward() == COLLECTIVE_UNSPECIFIED) continue;
    decoding->exchanges_[i] = {
        .spec = op.op().exchange(), .x = op.Input("x"), .y = op.Output("y")};
  }
  decoding->workspace_bytes_ = places.workspace_bytes;
  for (const int t : TensorsOfHome(table, TensorSpec::OUTPUT)) {
    decoding->dtype_ = DTypeOfElement(table.tensors(t).dtype());
  }
  // Ids or the input: one row for each new position, or one in all.
  for (const int t : TensorsOfHome(table, TensorSpec::INPUT)) {
    const TensorSpec& input = table.tensors(t);
    decoding->rows_max_ = DimSize(input.dims(1));
    decoding->input_row_bytes_ =
        ColumnsOf(input) *
        static_cast<int64_t>(DTypeBytes(DTypeOfElement(input.dtype())));
  }
  RETURN_IF_ERROR(decoding->FindTokens(units, table));
  return decoding;
}

absl::Status DecodingUnit::FindTokens(const UnitList& units,
                                      const UnitTable& table) {
  const std::vector<int> read = TensorsOfHome(table, TensorSpec::BATCH);
  for (size_t port = 0; port < read.size(); ++port) {
    const TensorSpec& tensor = table.tensors(read[port]);
    if (!IsRead(table, read[port])) continue;
    const BatchTensor* const loaded =
        FindBatchTensor(units.batch, tensor.name());
    const std::string source = loaded == nullptr ? "" : loaded->source();
    if (source == kTokensSource) {
      token_ports_.push_back(static_cast<int>(port));
      rows_max_ = DimSize(tensor.dims(1));
    } else if (source != kDocumentStartsSource) {  // a text is one document
      return absl::InvalidArgumentError(
          absl::StrCat("a unit reads ", tensor.name(),
                       " of the batch, which a text that is generated has "
                       "not; models of this kind are trained only"));
    }
  }
  return absl::OkStatus();
}

int64_t DecodingUnit::CacheBytes(int64_t positions) const {
  int64_t bytes = 0;
  for (const auto& layer : layers_) {
    bytes += AlignedCacheBytes(*layer, positions);
  }
  return bytes;
}

absl::Status DecodingUnit::Decode(Device& device, int64_t positions,
                                  const DecodeBuffers& buffers) const {
  CHECK(buffers.count >= 1 && buffers.count <= kDecodeTokensMax)
      << buffers.count;
  const int64_t rows = std::min(buffers.count, rows_max_);
  const int64_t skipped = buffers.count - rows;
  LayerCall call = {.device = device,
                    .parameters = buffers.parameters,
                    .tied_parameters = buffers.tied_parameters,
                    .decoding = {.count = rows,
                                 .first_position = buffers.position + skipped,
                                 .cache = buffers.cache,
                                 .cache_positions = positions}};
  const auto at = [&](UnitMemory memory) -> PortMemory& {
    return call.memory[static_cast<size_t>(memory)];
  };
  for (const int port : token_ports_) {
    at(UnitMemory::kBatch)[port] = const_cast<int32_t*>(buffers.tokens);
  }
  if (buffers.input != nullptr) {
    at(UnitMemory::kInput) =
        static_cast<char*>(buffers.input) + skipped * input_row_bytes_;
  }
  at(UnitMemory::kOutput) = buffers.output;
  at(UnitMemory::kWorkspace) = buffers.workspace;
  for (size_t op = 0; op < layers_.size(); ++op) {
    const Layer& layer = *layers_[op];
    if (const auto& exchange = exchanges_[op]; exchange.has_value()) {
      CHECK(buffers.peers != nullptr) << "a unit that is cut needs peers";
      RETURN_IF_ERROR(buffers.peers->Exchange(
          exchange->spec, exchange->x.In(call), exchange->y.In(call)));
    } else {
      layer.Forward(call);
    }
    call.decoding.cache = static_cast<char*>(call.decoding.cache) +
                          AlignedCacheBytes(layer, positions);
  }
  return absl::OkStatus();
}

}  // namespace troupe
