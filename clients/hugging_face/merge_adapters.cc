#include "clients/hugging_face/merge_adapters.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/lora.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

// `matrix` is [rows, columns].
std::vector<float> Transposed(const std::vector<float>& matrix, int64_t rows,
                              int64_t columns) {
  std::vector<float> transposed(matrix.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      transposed[c * rows + r] = matrix[r * columns + c];
    }
  }
  return transposed;
}

// Names of weights that are kept [in, out].
std::set<std::string> InOutWeights(const Unit& unit, const UnitTable& table) {
  std::set<std::string> names;
  for (const Op& op : table.ops()) {
    if (!op.linear().adapted() || !op.linear().in_out()) continue;
    for (const int index : op.parameters()) {
      names.insert(unit.parameters(index).name());
    }
  }
  return names;
}

}  // namespace

MergedWeights::MergedWeights(const UnitList& units, const LoraSpec& lora,
                             const TensorReader& checkpoint)
    : checkpoint_(checkpoint), scale_(LoraScale(lora)) {
  for (const Unit& unit : units.units) {
    const UnitTable& table = units.tables[unit.table()];
    const std::set<std::string> in_out = InOutWeights(unit, table);
    for (const Op& op : table.ops()) {
      if (op.kind() != Op::LOW_RANK) continue;
      const int downs = op.parameters_size() - op.low_rank().columns_size();
      for (int b = 0; b < op.low_rank().columns_size(); ++b) {
        const int a = op.low_rank().columns(b).down();
        const Parameter& down = unit.parameters(op.parameters(a));
        const Parameter& up = unit.parameters(op.parameters(downs + b));
        absl::string_view layer = up.name();
        CHECK(absl::ConsumeSuffix(&layer, kLoraUp)) << up.name();
        const std::string weight = absl::StrCat(layer, ".weight");
        adapters_[weight] = {.down = down.name(),
                             .up = up.name(),
                             .rank = WholeShape(down)[0],
                             .in = WholeShape(down)[1],
                             .out = WholeShape(up)[0],
                             .in_out = in_out.count(weight) > 0};
      }
    }
  }
}

absl::Status MergedWeights::Load(const std::string& name,
                                 const Adapter& adapter) {
  loaded_.clear();
  std::vector<float> down(adapter.rank * adapter.in);
  std::vector<float> up(adapter.out * adapter.rank);
  for (auto& [tensor, values] :
       {std::pair{&adapter.down, &down}, std::pair{&adapter.up, &up}}) {
    RETURN_IF_ERROR(checkpoint_.ReadRange(
        *tensor, StoredDType::kF32,
        {.begin = 0, .count = static_cast<int64_t>(values->size())},
        values->data()));
  }
  if (adapter.in_out) {
    rows_ = Transposed(down, adapter.rank, adapter.in);
    columns_ = Transposed(up, adapter.out, adapter.rank);
  } else {
    rows_ = std::move(up);
    columns_ = std::move(down);
  }
  loaded_ = name;
  return absl::OkStatus();
}

absl::Status MergedWeights::ReadRange(const std::string& name,
                                      const FlatRange& range, float* out) {
  RETURN_IF_ERROR(checkpoint_.ReadRange(name, StoredDType::kF32, range, out));
  const auto found = adapters_.find(name);
  if (found == adapters_.end()) return absl::OkStatus();
  const Adapter& adapter = found->second;
  if (loaded_ != name) RETURN_IF_ERROR(Load(name, adapter));
  const int64_t columns = adapter.in_out ? adapter.out : adapter.in;
  for (int64_t done = 0; done < range.count;) {
    const int64_t row = (range.begin + done) / columns;
    const int64_t first = (range.begin + done) % columns;
    const int64_t count = std::min(range.count - done, columns - first);
    sum_.assign(count, 0);
    for (int64_t k = 0; k < adapter.rank; ++k) {
      const double factor = rows_[row * adapter.rank + k];
      const float* const of_columns = &columns_[k * columns + first];
      for (int64_t c = 0; c < count; ++c) sum_[c] += factor * of_columns[c];
    }
    for (int64_t c = 0; c < count; ++c) {
      float& element = out[done + c];
      element = static_cast<float>(element + scale_ * sum_[c]);
    }
    done += count;
  }
  return absl::OkStatus();
}

}  // namespace troupe
