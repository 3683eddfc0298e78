#include "proto/plan/optimizer_states.h"

#include <algorithm>
#include <map>
#include <vector>

#include "proto/base/check.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

// What is kept beside a rule's own states.
struct Beside {
  bool outer_weights = false;
  bool outer_momentum = false;
  bool average = false;

  int index() const {
    return (outer_weights ? 1 : 0) + (outer_momentum ? 2 : 0) +
           (average ? 4 : 0);
  }
};
constexpr int kBesides = 8;

Beside BesideOf(const OptimizerSpec& optimizer) {
  return {.outer_weights = optimizer.has_outer(),
          .outer_momentum =
              optimizer.has_outer() && optimizer.outer().momentum() != 0,
          .average = optimizer.has_ema()};
}

// A rule's own states and what is kept beside them, by Beside::index().
using States = std::vector<absl::string_view>;
std::vector<States> WithAll(absl::Span<const absl::string_view> own) {
  std::vector<States> all(kBesides, States(own.begin(), own.end()));
  for (int i = 0; i < kBesides; ++i) {
    if ((i & 1) != 0) all[i].push_back(kOuterWeightsState);
    if ((i & 2) != 0) all[i].push_back(kOuterMomentumState);
    if ((i & 4) != 0) all[i].push_back(kAverageState);
  }
  return all;
}

absl::Span<const absl::string_view> StatesOf(const OptimizerRow& row,
                                             double momentum,
                                             const Beside& beside) {
  static const auto* const kWithout =
      new std::vector<States>(WithAll(absl::Span<const absl::string_view>()));
  static const auto* const kWith = [] {
    auto* const with = new std::map<absl::string_view, std::vector<States>>;
    for (const OptimizerRow& each : OptimizerRows()) {
      with->emplace(each.name, WithAll(each.states));
    }
    return with;
  }();
  const auto found = kWith->find(row.name);
  if (found == kWith->end()) return {};  // it changes nothing
  const bool none = row.states_need_momentum && momentum == 0;
  return (none ? *kWithout : found->second)[beside.index()];
}

// Whether each element of the flat buffer has one, whatever the rule.
bool IsBeside(absl::string_view state) {
  return state == kAverageState || state == kOuterWeightsState ||
         state == kOuterMomentumState;
}

// Whether it keeps states of rows and columns in place of ones of elements.
bool IsFactored(const OptimizerRow& row) {
  return std::count(row.states.begin(), row.states.end(), kRowState) > 0;
}

// Of a matrix, or of each of several; nothing: of a vector.
absl::optional<ParameterState> FactorOf(absl::string_view state,
                                        const Parameter& parameter,
                                        const Range& range) {
  const int dims = parameter.dims_size();
  if (dims < 2) return absl::nullopt;
  const std::vector<int64_t> shape = LocalShape(parameter);
  const int64_t columns = shape[dims - 1];
  ParameterState factor = {.shape = parameter, .piece = {.range = range}};
  if (state == kRowState) {
    factor.piece.period = columns;
    factor.shape.mutable_dims()->RemoveLast();
  } else {
    factor.piece.period = shape[dims - 2] * columns;
    factor.piece.kept = columns;
    factor.shape.mutable_dims()->DeleteSubrange(dims - 2, 1);
  }
  return factor;
}

// Behind the last piece, or as one with it.
void AppendPiece(const StatePiece& piece, UnitState& state) {
  if (!state.pieces.empty()) {
    StatePiece& last = state.pieces.back();
    if (last.period == 1 && piece.period == 1 &&
        last.range.end == piece.range.begin) {
      last.range.end = piece.range.end;
      return;
    }
  }
  state.pieces.push_back(piece);
}

// A state of one part. Those with an element for each of the flat buffer have
// some for alignment gaps, too.
void AppendStateOfPart(const OptimizerSpec& optimizer, const Unit& unit,
                       const Unit::Part& part, const Range& range,
                       absl::string_view name, UnitState& state) {
  const bool whole =
      IsBeside(name) || !IsFactored(RowOfRule(optimizer, part.rule()));
  if (whole) return AppendPiece({.range = range}, state);
  std::vector<StatePiece> pieces;
  for (const Parameter& parameter : unit.parameters()) {
    if (parameter.offset() < range.begin || parameter.offset() >= range.end) {
      continue;
    }
    const auto of = StateOfParameter(optimizer, part.rule(), name, parameter);
    if (of.has_value()) pieces.push_back(of->piece);
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const StatePiece& a, const StatePiece& b) {
              return a.range.begin < b.range.begin;
            });
  for (const StatePiece& piece : pieces) AppendPiece(piece, state);
}

}  // namespace

int64_t StatePiece::Before(int64_t end) const {
  const int64_t below = std::clamp(end, range.begin, range.end) - range.begin;
  return below / period * kept + std::min(below % period, kept);
}

int64_t UnitState::ElementsIn(const Range& of) const {
  int64_t elements = 0;
  for (const StatePiece& piece : pieces) {
    elements +=
        std::max<int64_t>(0, piece.Before(of.end) - piece.Before(of.begin));
  }
  return elements;
}

bool UnitState::is_prefix() const {
  return pieces.empty() || (pieces.size() == 1 && pieces[0].range.begin == 0 &&
                            pieces[0].period == pieces[0].kept);
}

absl::optional<ParameterState> StateOfParameter(const OptimizerSpec& optimizer,
                                                int rule,
                                                absl::string_view state,
                                                const Parameter& parameter) {
  const Range range = {parameter.offset(),
                       parameter.offset() + LocalElements(parameter)};
  if (state == kRowState || state == kColumnState) {
    return FactorOf(state, parameter, range);
  }
  const bool factored = IsFactored(RowOfRule(optimizer, rule)) &&
                        !IsBeside(state) && parameter.dims_size() >= 2;
  if (factored) return absl::nullopt;
  return ParameterState{.shape = parameter, .piece = {.range = range}};
}

absl::Span<const absl::string_view> StatesOfRule(const OptimizerSpec& optimizer,
                                                 int rule) {
  CHECK(rule >= 0 && rule < RuleCount(optimizer)) << rule;
  const double momentum = rule == 0 ? optimizer.momentum()
                                    : optimizer.groups(rule - 1).momentum();
  return StatesOf(RowOfRule(optimizer, rule), momentum, BesideOf(optimizer));
}

int OuterStates(const OptimizerSpec& optimizer) {
  const Beside beside = BesideOf(optimizer);
  return (beside.outer_weights ? 1 : 0) + (beside.outer_momentum ? 1 : 0);
}

absl::Span<const absl::string_view> StatesOfPart(const OptimizerSpec& optimizer,
                                                 const Unit::Part& part) {
  if (part.frozen()) return {};
  return StatesOfRule(optimizer, part.rule());
}

std::vector<absl::string_view> AllStates(const OptimizerSpec& optimizer) {
  std::vector<absl::string_view> all;
  for (int rule = 0; rule < RuleCount(optimizer); ++rule) {
    for (const absl::string_view state : StatesOfRule(optimizer, rule)) {
      const bool is_new = std::find(all.begin(), all.end(), state) == all.end();
      if (is_new) all.push_back(state);
    }
  }
  return all;
}

std::vector<UnitState> UnitStates(const OptimizerSpec& optimizer,
                                  const Unit& unit) {
  std::vector<UnitState> all;
  int64_t begin = 0;
  for (const Unit::Part& part : unit.parts()) {
    const Range range = {begin, begin + part.elements()};
    begin = range.end;
    if (range.size() == 0) continue;
    const auto names = StatesOfPart(optimizer, part);
    if (all.size() < names.size()) all.resize(names.size());
    for (size_t s = 0; s < names.size(); ++s) {
      AppendStateOfPart(optimizer, unit, part, range, names[s], all[s]);
    }
  }
  return all;
}

int64_t StateElements(const OptimizerSpec& optimizer, const Unit& unit,
                      const Range& of) {
  int64_t elements = 0;
  for (const UnitState& state : UnitStates(optimizer, unit)) {
    elements += state.ElementsIn(of);
  }
  return elements;
}

}  // namespace troupe
