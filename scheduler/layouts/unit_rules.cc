#include "scheduler/layouts/unit_rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/ports.h"
#include "proto/plan/sharing.h"
#include "proto/plan/slices.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/cut_table.h"
#include "scheduler/layouts/cut_units.h"
#include "scheduler/layouts/cut_with_ends.h"

namespace troupe {
namespace {

const AxisRules* FindAlong(const std::vector<AxisRules>& rules,
                           const std::string& axis) {
  for (const AxisRules& along : rules) {
    if (along.axis == axis) return &along;
  }
  return nullptr;
}

// From an output of one unit to an input of another.
struct UnitEdge {
  size_t from = 0;
  int output = 0;
  size_t to = 0;
  int input = 0;
};
std::vector<UnitEdge> EdgesOf(const std::vector<Unit>& units) {
  std::vector<UnitEdge> edges;
  for (size_t u = 0; u < units.size(); ++u) {
    for (int i = 0; i < units[u].inputs_size(); ++i) {
      const Unit::Source& source = units[u].inputs(i);
      edges.push_back({.from = static_cast<size_t>(source.unit()),
                       .output = source.output(),
                       .to = u,
                       .input = i});
    }
  }
  return edges;
}

// By output of a table, which of those of the cut table it is. One that is
// turned is made by its exchange, behind others that the same op makes.
std::vector<int> NumbersOfOutputs(const UnitTable& whole,
                                  const UnitTable& cut) {
  const std::vector<int> outputs = TensorsOfHome(cut, TensorSpec::OUTPUT);
  std::vector<int> numbers;
  for (const int t : TensorsOfHome(whole, TensorSpec::OUTPUT)) {
    const auto same =
        std::find_if(outputs.begin(), outputs.end(), [&](int output) {
          return cut.tensors(output).name() == whole.tensors(t).name();
        });
    CHECK(same != outputs.end()) << whole.tensors(t).name() << " is gone";
    numbers.push_back(static_cast<int>(same - outputs.begin()));
  }
  return numbers;
}

// How rules cut a tensor along one axis.
struct EndCut {
  AxisCut cut;
  Dim::Section::Cut how;
  bool operator==(const EndCut& other) const {
    return cut == other.cut &&
           how.SerializeAsString() == other.how.SerializeAsString();
  }
};
EndCut EndCutOf(const AxisRules& rules, const TensorSpec& tensor) {
  EndCut end = {.cut = WishFor(rules, tensor), .how = {}};
  if (end.cut.placement != Layout::SHARD) return end;
  Dim dim = tensor.dims(end.cut.dim);
  CutDim(rules, dim);
  end.how = *CutBy(dim.sections(0), rules.axis);
  return end;
}

// Cuts units that are cut by rules of their own.
class UnitsCut {
 public:
  UnitsCut(const UnitRules& rules, UnitList& units)
      : rules_(rules), units_(units), of_unit_(units.units.size()) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CheckFactors());
    for (size_t u = 0; u < units_.units.size(); ++u) {
      RETURN_IF_ERROR(CheckTied(u));
    }
    for (const UnitEdge& edge : EdgesOf(units_.units)) {
      RETURN_IF_ERROR(LayBetween(edge));
    }
    RETURN_IF_ERROR(CheckBatch());
    UnitList cut;
    cut.batch = units_.batch;
    cut.units.resize(units_.units.size());
    for (size_t s = 0; s < rules_.strategies.size(); ++s) {
      CutThoseOf(static_cast<int>(s), cut);
    }
    NumberInputs(cut);
    units_ = std::move(cut);
    return absl::OkStatus();
  }

 private:
  const std::vector<AxisRules>& RulesOf(size_t unit) const {
    return rules_.strategies[rules_.of_unit[unit]];
  }
  const UnitTable& TableOf(size_t unit) const {
    return units_.tables[units_.units[unit].table()];
  }

  // What a unit's ranks do along an axis that some strategy has. There is one,
  // as CheckFactors says.
  const AxisRules& Along(size_t unit, const std::string& axis) const {
    const AxisRules* const rules = FindAlong(RulesOf(unit), axis);
    CHECK(rules != nullptr) << "unit " << unit << " has nothing along " << axis;
    return *rules;
  }

  // Each factor of a stage's ranks has rules in each strategy.
  absl::Status CheckFactors() const {
    const std::vector<AxisRules>& first = rules_.strategies.front();
    for (const std::vector<AxisRules>& strategy : rules_.strategies) {
      for (const AxisRules& along : first) {
        const AxisRules* const own = FindAlong(strategy, along.axis);
        if (strategy.size() == first.size() && own != nullptr &&
            own->size == along.size) {
          continue;
        }
        return FieldError("parallelism.strategies",
                          absl::StrCat("not all of them say what the ",
                                       along.size, " ranks along ", along.axis,
                                       " do; use sizes that divide the ranks "
                                       "of a stage alike"));
      }
    }
    return absl::OkStatus();
  }

  const TensorSpec& MadeFor(const UnitEdge& edge) const {
    const UnitTable& table = TableOf(edge.from);
    return table.tensors(TensorsOfHome(table, TensorSpec::OUTPUT)[edge.output]);
  }

  // Says how what one unit makes for another lies between them.
  absl::Status LayBetween(const UnitEdge& edge) {
    const bool same = rules_.of_unit[edge.from] == rules_.of_unit[edge.to];
    if (same || !units_.units[edge.from].has_table()) return absl::OkStatus();
    const TensorSpec& made = MadeFor(edge);
    for (const AxisRules& maker : RulesOf(edge.from)) {
      const AxisRules& reader = Along(edge.to, maker.axis);
      const EndCut of_maker = EndCutOf(maker, made);
      const EndCut of_reader = EndCutOf(reader, made);
      if (of_maker == of_reader) continue;
      // As much as all of it is in memory, or moves, at one of the two only.
      const bool reader_turns = of_maker.cut.placement == Layout::SHARD;
      if (!CanTurn(of_maker, of_reader) || CutsRowsToo(edge, maker.axis)) {
        return Misfit(edge, maker.axis);
      }
      if (reader_turns) {
        of_unit_[edge.to][maker.axis].inputs[edge.input] = &maker;
      } else {
        of_unit_[edge.from][maker.axis].outputs[edge.output] = &reader;
      }
    }
    return absl::OkStatus();
  }

  // Pieces that are the whole, one behind the other; or two that are the same
  // rows.
  static bool CanTurn(const EndCut& from, const EndCut& to) {
    const bool both = from.cut.placement == to.cut.placement;
    if (both) {
      return !(from.cut == to.cut) &&
             TurnOf(from.cut, to.cut) == COLLECTIVE_UNSPECIFIED;
    }
    const EndCut& piece = from.cut.placement == Layout::SHARD ? from : to;
    return piece.cut.dim == 0 || piece.how.rows();
  }

  // Whether another axis cuts what this one has of the samples of one of the
  // two units, or rows of all samples as one: what it has then is no piece of
  // each sample. What cuts samples before it leaves it whole ones.
  bool CutsRowsToo(const UnitEdge& edge, const std::string& axis) const {
    const TensorSpec& made = MadeFor(edge);
    for (const size_t unit : {edge.from, edge.to}) {
      bool is_within = false;
      for (const AxisRules& other : RulesOf(unit)) {
        if (other.axis == axis) {
          is_within = true;
          continue;
        }
        const EndCut cut = EndCutOf(other, made);
        if (cut.cut.placement != Layout::SHARD) continue;
        if ((cut.cut.dim == 0 && is_within) || cut.how.rows()) return true;
      }
    }
    return false;
  }

  absl::Status Misfit(const UnitEdge& edge, const std::string& axis) const {
    const auto what = [&](size_t unit) {
      const AxisRules& rules = Along(unit, axis);
      return absl::StrCat(rules.field.name, ": ", rules.field.value);
    };
    return FieldError(
        "parallelism.strategies",
        absl::StrCat("unit ", edge.from, " makes what unit ", edge.to,
                     " reads, and no exchange turns how it lies with ",
                     what(edge.from), " into how it lies with ", what(edge.to),
                     "; use batch and tensor for the two"));
  }

  // A unit uses a parameter of another as that has it.
  absl::Status CheckTied(size_t u) const {
    for (const Unit::Tied& tied : units_.units[u].tied()) {
      if (rules_.of_unit[tied.unit()] == rules_.of_unit[u]) continue;
      return FieldError(
          "parallelism.strategies",
          absl::StrCat("unit ", u, " uses ", tied.parameter(), " of unit ",
                       tied.unit(),
                       ", and ranks must share it alike for both; give both "
                       "one strategy, or do without what uses it twice "
                       "(model.tie_word_embeddings, "
                       "model.num_nextn_predict_layers)"));
    }
    return absl::OkStatus();
  }

  // All units that read a tensor of the batch have the same of it.
  absl::Status CheckBatch() const {
    struct Reader {
      size_t unit = 0;
      const TensorSpec* read = nullptr;
    };
    std::map<std::string, Reader> first;
    for (size_t u = 0; u < units_.units.size(); ++u) {
      const UnitTable& table = TableOf(u);
      for (const int t : TensorsOfHome(table, TensorSpec::BATCH)) {
        const TensorSpec& read = table.tensors(t);
        const Reader& of =
            first.try_emplace(read.name(), Reader{u, &read}).first->second;
        for (const AxisRules& rules : RulesOf(u)) {
          if (EndCutOf(rules, read) ==
              EndCutOf(Along(of.unit, rules.axis), *of.read)) {
            continue;
          }
          return FieldError(
              "parallelism.strategies",
              absl::StrCat("units ", of.unit, " and ", u, " read ", read.name(),
                           " of the batch, and would load different parts "
                           "of it; give both ",
                           rules.field.name, ": ", rules.field.value,
                           " or neither"));
        }
      }
    }
    return absl::OkStatus();
  }

  // Units in a row that do the same go on sharing a table.
  void CutThoseOf(int strategy, UnitList& cut) {
    UnitList own;
    std::vector<Ends> ends;
    std::vector<size_t> numbers;
    int table = -1;  // of the units so far
    for (size_t u = 0; u < units_.units.size(); ++u) {
      if (rules_.of_unit[u] != strategy) continue;
      const bool same = !numbers.empty() && numbers.back() + 1 == u &&
                        units_.units[u].table() == table &&
                        of_unit_[u] == ends.back();
      table = units_.units[u].table();
      numbers.push_back(u);
      own.units.push_back(units_.units[u]);
      if (!same) {
        own.tables.push_back(units_.tables[table]);
        ends.push_back(of_unit_[u]);
      }
      own.units.back().set_table(static_cast<int>(own.tables.size()) - 1);
    }
    CutWithEnds(rules_.strategies[strategy], ends, own);
    const int before = static_cast<int>(cut.tables.size());
    for (UnitTable& of : own.tables) cut.tables.push_back(std::move(of));
    for (size_t i = 0; i < numbers.size(); ++i) {
      Unit& unit = cut.units[numbers[i]] = std::move(own.units[i]);
      unit.set_table(before + unit.table());
    }
  }

  // Units go on reading the same outputs.
  void NumberInputs(UnitList& cut) const {
    std::vector<std::vector<int>> numbers(units_.units.size());
    for (size_t u = 0; u < units_.units.size(); ++u) {
      const Unit& unit = cut.units[u];
      if (!unit.has_table()) continue;
      numbers[u] = NumbersOfOutputs(TableOf(u), cut.tables[unit.table()]);
    }
    for (Unit& unit : cut.units) {
      for (Unit::Source& source : *unit.mutable_inputs()) {
        const std::vector<int>& of = numbers[source.unit()];
        if (!of.empty()) source.set_output(of[source.output()]);
      }
    }
  }

  const UnitRules& rules_;
  UnitList& units_;
  std::vector<Ends> of_unit_;
};

}  // namespace

UnitRules RulesByUnit(const ParallelismSpec& parallelism,
                      const std::vector<int>& of_unit) {
  ParallelismSpec own = parallelism;
  own.clear_strategies();
  const std::vector<Axis> factors = FactorsOf(own);
  UnitRules rules = {.strategies = {RulesFor(own)}, .of_unit = {}};
  std::vector<std::string> texts = {SharingText(own)};
  std::vector<int> numbers;  // by strategy of the job
  for (int s = 0; s < parallelism.strategies_size(); ++s) {
    const ParallelismSpec spec =
        WithStrategy(parallelism, parallelism.strategies(s));
    const std::string text = SharingText(spec);
    const auto same = std::find(texts.begin(), texts.end(), text);
    numbers.push_back(static_cast<int>(same - texts.begin()));
    if (same != texts.end()) continue;
    texts.push_back(text);
    rules.strategies.push_back(RulesFor(
        spec, factors, absl::StrCat("parallelism.strategies[", s, "]")));
  }
  for (const int s : of_unit) {
    rules.of_unit.push_back(s < 0 ? 0 : numbers[s]);
  }
  return rules;
}

absl::Status CheckCuts(const UnitRules& rules, const UnitList& units) {
  // Units of one strategy need not have what those of another have.
  RETURN_IF_ERROR(CheckHasExperts(units, rules.strategies.front()));
  for (size_t s = 0; s < rules.strategies.size(); ++s) {
    UnitList own;
    for (size_t u = 0; u < units.units.size(); ++u) {
      const Unit& unit = units.units[u];
      if (rules.of_unit[u] != static_cast<int>(s) || !unit.has_table()) {
        continue;
      }
      own.tables.push_back(units.tables[unit.table()]);
      own.units.push_back(unit);
    }
    RETURN_IF_ERROR(CheckCuts(own, rules.strategies[s]));
  }
  return absl::OkStatus();
}

absl::Status CutUnits(const UnitRules& rules, UnitList& units) {
  if (rules.strategies.size() == 1) {
    CutUnits(rules.strategies.front(), units);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(UnitsCut(rules, units).Run());
  units.Derive();
  return absl::OkStatus();
}

}  // namespace troupe
