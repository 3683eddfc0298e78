#include "proto/plan/check_edges.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/index.h"
#include "proto/plan/ports.h"

namespace troupe {
namespace {

// Every unit reads outputs of units before it, of the same sizes and type, and
// every output has one reader.
class EdgeCheck {
 public:
  explicit EdgeCheck(const Plan& plan) : plan_(plan) {
    for (const Unit& unit : plan.units()) {
      inputs_.push_back(PortsOf(unit, TensorSpec::INPUT));
      outputs_.push_back(PortsOf(unit, TensorSpec::OUTPUT));
      readers_.emplace_back(outputs_.back().size(), -1);
    }
  }

  absl::Status Run() {
    for (int u = 0; u < plan_.units_size(); ++u) {
      const Unit& unit = plan_.units(u);
      const int wanted = static_cast<int>(inputs_[u].size());
      if (unit.inputs_size() != wanted) {
        return At(u, absl::StrCat("its table reads ", wanted,
                                  " outputs of units, but it names ",
                                  unit.inputs_size()));
      }
      for (int i = 0; i < wanted; ++i) RETURN_IF_ERROR(CheckInput(u, i));
    }
    for (int u = 0; u < plan_.units_size(); ++u) {
      for (size_t k = 0; k < readers_[u].size(); ++k) {
        if (readers_[u][k] >= 0) continue;
        return At(u, absl::StrCat("no unit reads its output ", k));
      }
    }
    return absl::OkStatus();
  }

 private:
  // Of a unit without a table, one stands for what has no spec.
  std::vector<const TensorSpec*> PortsOf(const Unit& unit,
                                         TensorSpec::Home home) const {
    if (!unit.has_table()) {
      const bool is_input = home == TensorSpec::INPUT;
      const Unit& end =
          is_input ? plan_.units(0) : plan_.units(plan_.units_size() - 1);
      if (&unit == &end) return {};
      return {nullptr};
    }
    const UnitTable& table = plan_.tables(unit.table());
    std::vector<const TensorSpec*> ports;
    for (const int t : TensorsOfHome(table, home)) {
      ports.push_back(&table.tensors(t));
    }
    return ports;
  }

  absl::Status CheckInput(int u, int index) {
    const Unit::Source& source = plan_.units(u).inputs(index);
    const std::string what =
        absl::StrCat("its input ", index, " is output ", source.output(),
                     " of unit ", source.unit());
    if (!IsIndexIn(source.unit(), u)) {
      return At(u, absl::StrCat(what, ", which does not run before it"));
    }
    const int outputs = static_cast<int>(outputs_[source.unit()].size());
    if (!IsIndexIn(source.output(), outputs)) {
      return At(u, absl::StrCat(what, ", which has ", outputs));
    }
    int& reader = readers_[source.unit()][source.output()];
    if (reader >= 0) {
      return At(u, absl::StrCat(what, ", which unit ", reader,
                                " reads: a FORK makes one for each"));
    }
    reader = u;
    const TensorSpec* const read = inputs_[u][index];
    const TensorSpec* const made = outputs_[source.unit()][source.output()];
    if (!AreAlike(read, made)) {
      return At(u,
                absl::StrCat(what, ", which has other dims or another type"));
    }
    if (read != nullptr && read->no_gradient() && !made->no_gradient()) {
      return At(u, absl::StrCat(what, ", whose gradient nobody makes"));
    }
    return absl::OkStatus();
  }

  // Sizes as ranks have them, and how they lie over ranks.
  static bool AreAlike(const TensorSpec* a, const TensorSpec* b) {
    if (a == nullptr || b == nullptr) return a == b;
    const auto text = [](const TensorSpec& of) {
      TensorSpec compared;
      *compared.mutable_dims() = of.dims();
      compared.set_dtype(of.dtype());
      compared.set_row_alignment(of.row_alignment());
      *compared.mutable_layout() = of.layout();
      *compared.mutable_gradient_layout() = of.gradient_layout();
      return compared.SerializeAsString();
    };
    return text(*a) == text(*b);
  }

  static absl::Status At(int unit, absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat("unit ", unit, ": ", what));
  }

  const Plan& plan_;
  std::vector<std::vector<const TensorSpec*>> inputs_;   // by unit
  std::vector<std::vector<const TensorSpec*>> outputs_;  // by unit
  std::vector<std::vector<int>> readers_;                // by unit and output
};

}  // namespace

absl::Status CheckEdges(const Plan& plan) { return EdgeCheck(plan).Run(); }

}  // namespace troupe
