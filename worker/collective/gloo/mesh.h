// A Gloo context in which every rank of a group is connected to every other.
//
// Each pair is one TCP connection. A rank opens a listening socket for each
// peer, learns where its peers listen for it (introduce.h), and dials or
// accepts pair by pair; so joining costs a rank size - 1 connections, each of
// which is an open file, and a few bytes in the store for each peer. Then all
// prove to each other that they belong to the group (prove_members.h).
//
// This file, prove_members.cc and wires.cc are where Gloo's exceptions end.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_MESH_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_MESH_H_

#include <gloo/context.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/collective/communicator_seat.h"
#include "worker/collective/gloo/catch_gloo.h"
#include "worker/collective/gloo/introduce.h"

namespace troupe {

class GlooMesh final : public ::gloo::Context {
 public:
  // Joins the group of the seat. Errors: InvalidArgument, the address cannot be
  // bound; ResourceExhausted, the process may not open that number of files;
  // those of the store; DeadlineExceeded or Unavailable, with the global rank
  // that did not come, could not be reached, or in whose place a stranger is.
  static absl::StatusOr<std::unique_ptr<GlooMesh>> Connect(
      const CommunicatorSeat& seat);

  // Connections close when the mesh and all buffers made from it are destroyed.
  GlooMesh(int rank, int size) : ::gloo::Context(rank, size) {}

 private:
  absl::StatusOr<ListeningSockets> Listen(const CommunicatorSeat& seat,
                                          absl::Time deadline);
  // Ends a wait for a connection, in any thread.
  void CloseConnections();
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_MESH_H_
