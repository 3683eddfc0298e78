// What rows of layouts that make several ops of one write into a table.
#ifndef TROUPE_SCHEDULER_LAYOUTS_TABLE_WRITER_H_
#define TROUPE_SCHEDULER_LAYOUTS_TABLE_WRITER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/unit.pb.h"

namespace troupe {

// Adds tensors and ops in place of one op; their names begin with that of what
// it makes.
class TableWriter {
 public:
  TableWriter(const Op& op, UnitTable& table);

  struct Named {
    const char* name;
    int tensor;
  };
  Op& AddOp(Op::Kind kind, const std::vector<Named>& inputs,
            const std::vector<Named>& outputs);
  // Like another, but within the unit.
  int NewTensor(int like, absl::string_view what);
  TensorSpec& tensor(int number) { return *table_.mutable_tensors(number); }
  // Two of the sections of the columns of x, [0, first) and the others.
  std::pair<int, int> Split(int x, int first, absl::string_view what,
                            absl::string_view others);

  // Makes `all`: what each rank along these axes has of `own`, one behind the
  // other along the first dim, ranks of the last axis side by side.
  void Gather(const std::vector<std::string>& axes, int own, int all);

  static Op::Operand OperandOf(const std::string& name, int tensor);

 private:
  UnitTable& table_;
  const std::string name_;
};

// Makes others of each op of a kind; the rest of the table stays.
void ReplaceOps(Op::Kind kind,
                const std::function<void(const Op&, UnitTable&)>& replace,
                UnitTable& table);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_TABLE_WRITER_H_
