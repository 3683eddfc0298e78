#include "proto/plan/check_panels.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/made_again.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ops/op_view.h"

namespace troupe {
namespace {

class PanelCheck {
 public:
  PanelCheck(const Mesh& mesh, const UnitTable& table, int index)
      : mesh_(mesh), table_(table), index_(index) {}

  absl::Status Run() const {
    std::vector<bool> in_chain(table_.ops_size(), false);
    for (int op = 0; op < table_.ops_size(); ++op) {
      if (table_.ops(op).kind() != Op::PRODUCT) continue;
      if (View(op).HasInput("y before")) continue;
      const std::vector<int> chain = ChainFrom(op);
      for (const int part : chain) in_chain[part] = true;
      RETURN_IF_ERROR(CheckChain(chain));
    }
    for (int op = 0; op < table_.ops_size(); ++op) {
      if (table_.ops(op).kind() != Op::PRODUCT || in_chain[op]) continue;
      return At(op, "goes on from no product of panel 0");
    }
    return CheckReturns();
  }

 private:
  OpView View(int op) const { return {table_, table_.ops(op)}; }

  std::vector<int> ChainFrom(int first) const {
    std::vector<int> chain = {first};
    for (int op = first + 1; op < table_.ops_size(); ++op) {
      if (table_.ops(op).kind() != Op::PRODUCT) continue;
      if (View(op).Input("y before") == View(chain.back()).Output("y")) {
        chain.push_back(op);
      }
    }
    return chain;
  }

  absl::Status CheckChain(const std::vector<int>& chain) const {
    for (const char* const operand : {"x", "w"}) {
      RETURN_IF_ERROR(CheckOperand(chain, operand));
    }
    for (size_t i = 0; i < chain.size(); ++i) {
      const Op& op = table_.ops(chain[i]);
      if (op.panel() != static_cast<int>(i)) {
        return At(chain[i], absl::StrCat("is of panel ", op.panel(), ", where ",
                                         i, " is due"));
      }
      if (i == 0 || op.parameters().empty()) continue;
      return At(chain[i], "adds biases that the first one adds");
    }
    return absl::OkStatus();
  }

  // As many panels as places, all of one tensor.
  absl::Status CheckOperand(const std::vector<int>& chain,
                            const char* operand) const {
    const std::string axis = AxisOfPanel(View(chain[0]).input(operand));
    const int places = axis.empty() ? 1 : AxisSize(mesh_, axis);
    if (static_cast<int>(chain.size()) != places) {
      return At(chain.back(), absl::StrCat("is the last of ", chain.size(),
                                           " panels, but ", operand, " is on ",
                                           places, " ranks along ", axis));
    }
    const int whole = SentAs(View(chain[0]).Input(operand));
    for (const int op : chain) {
      if (SentAs(View(op).Input(operand)) == whole) continue;
      return At(op, absl::StrCat("has a panel of ",
                                 NameOf(SentAs(View(op).Input(operand))),
                                 ", the ones before of ", NameOf(whole)));
    }
    return absl::OkStatus();
  }

  // What is broadcast again is what was broadcast, and stands behind the op
  // that reads it, so that backward it comes before.
  absl::Status CheckReturns() const {
    for (int op = 0; op < table_.ops_size(); ++op) {
      const Op& back = table_.ops(op);
      if (back.kind() != Op::RETURN ||
          back.exchange().backward() != BROADCAST) {
        continue;
      }
      const int panel = back.inputs(0).tensor();
      if (!IsSentAgain(MakerOf(table_, panel), back)) {
        return At(op, absl::StrCat("brings back ", NameOf(panel), " from ",
                                   NameOf(back.inputs(1).tensor()),
                                   ", of which it was not made"));
      }
      for (int reader = op + 1; reader < table_.ops_size(); ++reader) {
        for (const Op::Operand& input : table_.ops(reader).inputs()) {
          if (input.tensor() != panel) continue;
          return At(op, absl::StrCat("brings back ", NameOf(panel),
                                     ", which ops behind it read"));
        }
      }
    }
    return absl::OkStatus();
  }

  // Whether the op was the broadcast of it; -1: none was.
  bool IsSentAgain(int op, const Op& back) const {
    if (op < 0) return false;
    const Op& sent = table_.ops(op);
    return sent.exchange().forward() == BROADCAST &&
           sent.inputs(0).tensor() == back.inputs(1).tensor() &&
           std::equal(sent.exchange().axes().begin(),
                      sent.exchange().axes().end(),
                      back.exchange().axes().begin(),
                      back.exchange().axes().end()) &&
           sent.exchange().root() == back.exchange().root();
  }

  static std::string AxisOfPanel(const TensorSpec& tensor) {
    for (const Layout::AxisLayout& axis : tensor.layout().axes()) {
      if (axis.has_panel()) return axis.axis();
    }
    return "";
  }

  // What it was when it was sent.
  int SentAs(int tensor) const {
    const int maker = MakerOf(table_, tensor);
    if (maker < 0 || table_.ops(maker).exchange().forward() != BROADCAST) {
      return tensor;
    }
    return table_.ops(maker).inputs(0).tensor();
  }

  const std::string& NameOf(int tensor) const {
    return table_.tensors(tensor).name();
  }

  absl::Status At(int op, absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", index_, ": op ", op, " ",
                     Op::Kind_Name(table_.ops(op).kind()), " ", what));
  }

  const Mesh& mesh_;
  const UnitTable& table_;
  const int index_;
};

}  // namespace

absl::Status CheckPanels(const Plan& plan) {
  for (int t = 0; t < plan.tables_size(); ++t) {
    RETURN_IF_ERROR(PanelCheck(plan.mesh(), plan.tables(t), t).Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
