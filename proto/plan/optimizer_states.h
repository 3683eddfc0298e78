// The states that an optimizer keeps beside each parameter, all f32. They are
// the parts of OPTIMIZER_STATE and of a recovery copy, in this order, and
// tensors of a checkpoint. Code that lays out, counts, writes or reads them
// asks here: a writer that assumes a state which nobody keeps reads what lies
// behind the buffer.
//
// How many states a parameter has is said by its rule (optimizer_rules.h). The
// parts of a unit with more states lie before those with fewer.
//
//   flat buffer   | adamw | lion | sgd | frozen |
//   state 0       | adamw | lion |
//   state 1       | adamw |
//
// Most states have an element for each of the flat buffer. Adafactor keeps one
// for each row and one for each column of a matrix. Such an element belongs to
// an element of the flat buffer: that of a row to the first one of the row,
// that of a column to the one in row 0. So a range of the flat buffer has a
// range of each state, wherever it is cut, and ranges that do not overlap have
// different ones: slices (ZeRO), duties and copies need nothing more.
#ifndef TROUPE_PROTO_PLAN_OPTIMIZER_STATES_H_
#define TROUPE_PROTO_PLAN_OPTIMIZER_STATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"
#include "proto/plan/layout.h"
#include "proto/unit.pb.h"

namespace troupe {

// With optimizer.ema each rule keeps a moving average of the weights, behind
// all other states. It begins as the weights.
inline constexpr absl::string_view kAverageState = "ema";
// With optimizer.outer (islands) each rule keeps, behind its own states, the
// weights that all islands had after their last exchange, which begin as the
// weights, and the momentum of the outer optimizer, where it has any. All
// states but these and the average begin at zero.
inline constexpr absl::string_view kOuterWeightsState = "outer_weights";
inline constexpr absl::string_view kOuterMomentumState = "outer_momentum";

// By their names. AdamW: "exp_avg", "exp_avg_sq"; Lion: "exp_avg"; Adafactor:
// kRowState, kColumnState, "exp_avg_sq"; Muon, and SGD with momentum:
// "momentum"; else none; and behind these the outer states and kAverageState.
// REQUIRES a resolved spec, as all below.
absl::Span<const absl::string_view> StatesOfRule(const OptimizerSpec& optimizer,
                                                 int rule);

// How many of them an exchange of islands changes, and no STEP.
int OuterStates(const OptimizerSpec& optimizer);

// Those of a part of a unit; a frozen one has none.
absl::Span<const absl::string_view> StatesOfPart(const OptimizerSpec& optimizer,
                                                 const Unit::Part& part);

// The names of all that some rule of the job keeps, each once.
std::vector<absl::string_view> AllStates(const OptimizerSpec& optimizer);

// The elements of a flat buffer that have an element of some state: in `range`,
// of each `period` elements the first `kept`.
struct StatePiece {
  Range range;
  int64_t period = 1;
  int64_t kept = 1;

  // Of its elements, those that belong to elements below `end`.
  int64_t Before(int64_t end) const;
};

// Adafactor's, in the order of its states.
inline constexpr absl::string_view kRowState = "exp_avg_sq_row";
inline constexpr absl::string_view kColumnState = "exp_avg_sq_col";

// A state of a parameter as a tensor of its own: the parameter, of kRowState
// without its last dim, of kColumnState without the one before. Nothing: it has
// no such state, as a vector has no rows and a matrix of Adafactor no
// exp_avg_sq.
struct ParameterState {
  Parameter shape;
  StatePiece piece;
};
absl::optional<ParameterState> StateOfParameter(const OptimizerSpec& optimizer,
                                                int rule,
                                                absl::string_view state,
                                                const Parameter& parameter);

// One state of a unit. Pieces ascend and do not overlap.
struct UnitState {
  std::vector<StatePiece> pieces;

  // How many of its elements a range of the flat buffer has.
  int64_t ElementsIn(const Range& of) const;
  // Whether all elements up to some end have one, and no others.
  bool is_prefix() const;
};

// State 0, state 1, ... of the unit. A state that no element has is not listed.
// REQUIRES the unit's parts.
std::vector<UnitState> UnitStates(const OptimizerSpec& optimizer,
                                  const Unit& unit);

// How many elements all states of the unit's elements `of` have together.
int64_t StateElements(const OptimizerSpec& optimizer, const Unit& unit,
                      const Range& of);

// Its name in a checkpoint: "optimizer.exp_avg.transformer.wte.weight".
inline constexpr absl::string_view kStateTensors = "optimizer.";
inline std::string StateTensorName(absl::string_view state,
                                   absl::string_view parameter) {
  return absl::StrCat(kStateTensors, state, ".", parameter);
}
// Of a tensor of this state: the name of its parameter; else empty.
inline absl::string_view ParameterWithState(absl::string_view state,
                                            absl::string_view state_tensor) {
  const bool is_it = absl::ConsumePrefix(&state_tensor, kStateTensors) &&
                     absl::ConsumePrefix(&state_tensor, state) &&
                     absl::ConsumePrefix(&state_tensor, ".");
  return is_it ? state_tensor : absl::string_view();
}
// Of a state that begins as the weights: the name of its parameter; else empty.
inline absl::string_view BeginsAsParameter(absl::string_view state_tensor) {
  const absl::string_view averaged =
      ParameterWithState(kAverageState, state_tensor);
  return averaged.empty() ? ParameterWithState(kOuterWeightsState, state_tensor)
                          : averaged;
}
// Whether it is one of the outer optimizer's.
inline bool IsOuterStateTensor(absl::string_view state_tensor) {
  return !ParameterWithState(kOuterWeightsState, state_tensor).empty() ||
         !ParameterWithState(kOuterMomentumState, state_tensor).empty();
}
inline bool IsStateTensor(absl::string_view name) {
  return absl::StartsWith(name, kStateTensors);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPTIMIZER_STATES_H_
