#include "worker/collective/gloo/proof.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr char kKnown[] = "the secret of this attempt";

Proof Of(int rank, int peer, const std::string& secret = kKnown,
         const std::string& group = "g") {
  return Proof({.group = group, .rank = rank, .peer = peer}, secret);
}

// Whether `b` proves itself to `a`.
bool Proves(const Proof& a, const Proof& b) {
  return a.IsProvenBy(b.Answer(a.nonce()), b.nonce());
}

TEST(Proof, BothWhoKnowTheSecretAreProven) {
  const Proof a = Of(0, 1);
  const Proof b = Of(1, 0);
  EXPECT_EQ(a.nonce().size(), Proof::kBytes);
  EXPECT_EQ(a.Answer(b.nonce()).size(), Proof::kBytes);
  EXPECT_TRUE(Proves(a, b));
  EXPECT_TRUE(Proves(b, a));
}

TEST(Proof, AnotherSecretGroupOrPlaceIsRefused) {
  const Proof a = Of(0, 1);
  EXPECT_FALSE(Proves(a, Of(1, 0, "the secret of the attempt before")));
  EXPECT_FALSE(Proves(a, Of(1, 0, kKnown, "another group")));
  EXPECT_FALSE(Proves(a, Of(2, 0))) << "a member, in another's place";
  EXPECT_FALSE(Proves(a, Of(0, 1))) << "as if it were us";
}

TEST(Proof, AnEchoIsNoAnswer) {
  const Proof a = Of(0, 1);
  EXPECT_FALSE(a.IsProvenBy(a.nonce(), a.nonce()));
  EXPECT_FALSE(a.IsProvenBy(a.Answer(a.nonce()), a.nonce()));
  EXPECT_FALSE(a.IsProvenBy("", ""));
}

TEST(Proof, WhatWasSaidBeforeIsNoAnswer) {
  const Proof b = Of(1, 0);
  const Proof before = Of(0, 1);
  const std::string answer = b.Answer(before.nonce());
  EXPECT_TRUE(before.IsProvenBy(answer, b.nonce()));
  EXPECT_FALSE(Of(0, 1).IsProvenBy(answer, b.nonce()));
}

}  // namespace
}  // namespace troupe
