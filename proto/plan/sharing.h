// The fields of a job's parallelism by which the ranks of a stage share units,
// by name. A field counts ranks (`tensor`), another says in which of several
// ways these share a unit (`tensor_method`), and a way may have fields of its
// own (`tensor_depth`). A strategy has all of them (StrategySpec), under the
// same names. What they mean is said in one place each, the rows of
// scheduler/layouts; all others treat them alike.
#ifndef TROUPE_PROTO_PLAN_SHARING_H_
#define TROUPE_PROTO_PLAN_SHARING_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

// A field that counts ranks.
struct RankField {
  std::string name;
  int max = 1;
  // Its ranks are some of those of `data`, and perhaps of other fields (its row
  // says which): they are counted once, share what all units have, and are no
  // strategy's. Its row's own fields are named after it (`expert_slack`), and
  // so is the axis of those of data.
  bool of_data = false;

  std::string Path() const { return "parallelism." + name; }
  // Of the field that says how they share a unit, where there are several ways.
  std::string MethodName() const { return name + "_method"; }
};

// In the order of the mesh: neighbours on the axes of the last one share a
// host, so the one whose ranks exchange most comes last.
const std::vector<RankField>& RankFields();
// Those whose ranks are a stage's own: of the others `data` has the ranks.
const std::vector<RankField>& FactorFields();
bool IsRankField(const std::string& name);
// Whether a field of factors is 2 or more.
bool SharesUnits(const ParallelismSpec& parallelism);

// 1 where it is not given.
int RanksOf(const ParallelismSpec& parallelism, const std::string& field);
void SetRanks(const std::string& field, int ranks,
              ParallelismSpec& parallelism);

// Of any field of a number, a word or yes and no. REQUIRES that there is one;
// of HasField, it may also not exist.
bool HasField(const ParallelismSpec& parallelism, const std::string& field);
void ClearField(const std::string& field, ParallelismSpec& parallelism);
bool IsYesOrNo(const std::string& field);
// As in a job file: "4", "ring", "true"; empty where it is not given.
std::string FieldText(const ParallelismSpec& parallelism,
                      const std::string& field);
// REQUIRES a text that the field can have.
void SetField(const std::string& field, const std::string& text,
              ParallelismSpec& parallelism);

// Sets the fields of `to` by which units are shared as they are in `from`, or
// clears them. A strategy has none of fields of data.
void CopySharing(const ParallelismSpec& from, ParallelismSpec& to);
void CopySharing(const ParallelismSpec& from, StrategySpec& to);
void CopySharing(const StrategySpec& from, ParallelismSpec& to);

// "tensor: 2, sequence_parallel: true", as in a job file, without what is 1 or
// false; "1 rank".
std::string SharingText(const ParallelismSpec& parallelism);
// "blocks by batch: 2; stage 1 by tensor: 2", or empty.
std::string StrategiesText(const ParallelismSpec& parallelism);
// The same of fields of data: "expert: 4, expert_slack: 2"; or empty.
std::string SharingOfDataText(const ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SHARING_H_
