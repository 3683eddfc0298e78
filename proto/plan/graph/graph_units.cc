#include "proto/plan/graph/graph_units.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/graph/expand_graph.h"
#include "proto/plan/graph/graph_batch.h"
#include "proto/plan/graph/op_writer.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/ports.h"

namespace troupe {
namespace {

absl::Status CheckSizes(const GraphText& text) {
  const struct {
    const char* name;
    int64_t value;
    int64_t max;
  } rows[] = {{"vocab_size", text.graph.vocab_size(), kGraphRowsMax},
              {"max_position_embeddings", text.graph.max_position_embeddings(),
               kModelPositionsMax}};
  for (const auto& row : rows) {
    if (row.value >= 1 && row.value <= row.max) continue;
    return text.Error(
        0, absl::StrCat(row.name, " is ", row.value, "; use 1 to ", row.max));
  }
  return absl::OkStatus();
}

Unit::Kind KindOf(const ExpandedUnit& unit) {
  Unit::Kind kind = Unit::BLOCK;
  for (const GraphOp& op : unit.ops) {
    if (op.has_loss()) return Unit::HEAD;
    if (op.has_embed()) kind = Unit::EMBEDDING;
  }
  return kind;
}

class Builder {
 public:
  Builder(const GraphText& text, const MicroBatchShape& shape,
          BatchSchema batch, std::vector<ExpandedUnit> expanded)
      : text_(text), shape_(shape), expanded_(std::move(expanded)) {
    names_.batch = std::move(batch);
  }

  absl::StatusOr<UnitList> Run() {
    for (size_t u = 0; u < expanded_.size(); ++u) {
      RETURN_IF_ERROR(AddUnit(static_cast<int>(u)));
    }
    if (names_.losses == 0) {
      return text_.Error(0, "has no loss { ... }: there is nothing to train");
    }
    for (int t = 0; t < text_.graph.batch_size(); ++t) {
      const std::string& name = text_.graph.batch(t).name();
      if (names_.batch_read.count(name) > 0) continue;
      return text_.Error(text_.batch_lines[t],
                         absl::StrCat("tensor ", Quoted(name),
                                      " of the batch is read by no op"));
    }
    return std::move(units_);
  }

 private:
  // What others read of a unit: the tensor, and which output each reader has.
  struct Output {
    TensorSpec made;
    int number = 0;
  };
  using Reader = std::pair<int, std::string>;  // unit, tensor

  absl::Status AddUnit(int index) {
    const ExpandedUnit& unit = expanded_[index];
    UnitBuilder builder(KindOf(unit), {.index = index,
                                       .layer = unit.copy,
                                       .first_mask = first_mask_,
                                       .shape = shape_,
                                       .numbers_all_masks = true});
    OpWriter writer(text_, unit, index, names_, builder);
    // Different texts may name one tensor.
    std::map<std::pair<int, std::string>, int> inputs;
    for (const GraphRead& read : unit.reads) {
      const auto [input, is_new] =
          inputs.try_emplace({read.unit, read.tensor}, -1);
      if (is_new) {
        const Output& output = outputs_[read.unit].at({index, read.tensor});
        Unit::Source source;
        source.set_unit(read.unit);
        source.set_output(output.number);
        input->second = builder.Input(source, output.made);
      }
      writer.AddInput(read.text, input->second);
    }
    RETURN_IF_ERROR(CheckPorts(unit, inputs.size(), "reads"));
    RETURN_IF_ERROR(writer.Run());
    for (const GraphExport& wanted : unit.exports) {
      ASSIGN_OR_RETURN(const int tensor, writer.Export(wanted));
      builder.Output(tensor);
      outputs_[index][{wanted.reader, wanted.tensor}].made =
          builder.table().tensors(tensor);
    }
    RETURN_IF_ERROR(CheckPorts(unit, unit.exports.size(), "is read by"));
    RETURN_IF_ERROR(writer.CheckRead());
    if (builder.unit().parameters().empty() && builder.unit().tied().empty()) {
      return text_.Error(unit.line,
                         absl::StrCat("unit ", unit.name,
                                      " has no parameters; put its ops into a "
                                      "neighbour"));
    }
    // The next group's masks begin where this one's end.
    const int masks = builder.masks();
    if (unit.copy + 1 == unit.copies) first_mask_ += masks * unit.copies;
    absl::StatusOr<std::vector<int>> numbers =
        units_.TryAppend(std::move(builder));
    if (!numbers.ok()) {
      return text_.Error(unit.line, absl::StrCat("unit ", unit.name, ": ",
                                                 numbers.status().message()));
    }
    for (size_t e = 0; e < unit.exports.size(); ++e) {
      const GraphExport& wanted = unit.exports[e];
      outputs_[index][{wanted.reader, wanted.tensor}].number = (*numbers)[e];
    }
    return absl::OkStatus();
  }

  absl::Status CheckPorts(const ExpandedUnit& unit, size_t count,
                          const char* what) const {
    if (count <= kPortsMax) return absl::OkStatus();
    return text_.Error(
        unit.line, absl::StrCat("unit ", unit.name, " ", what, " ", count,
                                " tensors of other units; at most ", kPortsMax,
                                " are possible"));
  }

  const GraphText& text_;
  const MicroBatchShape& shape_;
  const std::vector<ExpandedUnit> expanded_;
  GraphNames names_;
  UnitList units_;
  std::map<int, std::map<Reader, Output>> outputs_;  // by unit
  int first_mask_ = 0;
};

}  // namespace

absl::StatusOr<UnitList> GraphUnits(const GraphText& text,
                                    const MicroBatchShape& shape) {
  RETURN_IF_ERROR(CheckSizes(text));
  ASSIGN_OR_RETURN(BatchSchema batch, ReadGraphBatch(text, shape));
  ASSIGN_OR_RETURN(std::vector<ExpandedUnit> units, ExpandGraph(text));
  return Builder(text, shape, std::move(batch), std::move(units)).Run();
}

absl::StatusOr<int> GraphUnitCount(const GraphText& text) {
  ASSIGN_OR_RETURN(const std::vector<ExpandedUnit> units, ExpandGraph(text));
  return static_cast<int>(units.size());
}

}  // namespace troupe
