#include "tests/worker/collective/gloo/on_wires.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {

void OnWires(int ranks, const std::function<void(Wires&)>& body) {
  InMemoryStore store;
  OnThreads(ranks, [&](int index) {
    auto mesh = GlooMesh::Connect(TestSeat(ranks, index, &store));
    ASSERT_TRUE(mesh.ok()) << mesh.status();
    Wires wires(*std::move(mesh), std::make_shared<Watch>());
    body(wires);
  });
}

absl::Status Operation(Wires& wires,
                       const std::function<absl::Status()>& body) {
  absl::Status status = wires.Begin(SteadyNow() + absl::Seconds(100), 1);
  if (status.ok()) status = body();
  if (status.ok()) {
    wires.End();
  } else {
    wires.Close();
  }
  return status;
}

}  // namespace troupe
