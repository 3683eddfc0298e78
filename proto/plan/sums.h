// Plan.sums: what ranks add up in a step. Each sum is a run of f64 in SCALARS;
// they lie behind one another in the order of the list.
//
//   const SumPlace norm = PlaceOfSum(plan, kSquaredNormSum);
//   scalars[norm.first] += ...;
//
// What adds to a sum declares it: a kind of op in its row (OpRules.sums), a
// unit without ops by itself (Unit.addends). A pass collects what the units of
// a plan declare.
#ifndef TROUPE_PROTO_PLAN_SUMS_H_
#define TROUPE_PROTO_PLAN_SUMS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "google/protobuf/repeated_field.h"
#include "proto/plan.pb.h"
#include "proto/plan/sum_names.h"

namespace troupe {

using Sums = google::protobuf::RepeatedPtrField<Sum>;

// Those of every plan (sum_names.h), one element each: every list of sums
// begins with them, in this order.
Sums FirstSums();

struct SumPlace {
  int64_t first = 0;  // f64s of SCALARS that lie before it
  int64_t elements = 0;

  int64_t begin_bytes() const { return first * int64_t{sizeof(double)}; }
  int64_t end_bytes() const {
    return (first + elements) * int64_t{sizeof(double)};
  }
};

// Of the plan, or of a unit for itself. Nothing: there is no such sum.
absl::optional<SumPlace> FindSum(const Sums& sums, absl::string_view name,
                                 absl::optional<int> unit = absl::nullopt);
// The same, CHECKed to be there.
SumPlace PlaceOfSum(const Plan& plan, absl::string_view name,
                    absl::optional<int> unit = absl::nullopt);

// Whether each element is of one sequence of a step (sum_names.h).
bool IsOfSequences(const Sum& sum);
// Those whose elements all ranks report (StepReport.sums).
Sums ReportedSums(const Sums& sums);

// All together: SCALARS.
int64_t SumElements(const Sums& sums);
int64_t SumsBytes(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SUMS_H_
