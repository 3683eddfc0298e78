#include "proto/trust/member_files.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/trust/private_file.h"
#include "storage/disk/new_directory.h"

namespace troupe {
namespace {

absl::Status Check(const MemberFiles& files, PeerRole role, absl::Time now) {
  KeyAndCertificate member;
  ASSIGN_OR_RETURN(const std::string authority, ReadSmallFile(files.authority));
  ASSIGN_OR_RETURN(member.certificate, ReadSmallFile(files.certificate));
  ASSIGN_OR_RETURN(member.key, ReadPrivateFile(files.key));
  return CheckCertificate(member, authority, role, now);
}

}  // namespace

MemberFiles FilesOfMember(const std::string& directory) {
  return {.authority = absl::StrCat(directory, "/authority.pem"),
          .certificate = absl::StrCat(directory, "/certificate.pem"),
          .key = absl::StrCat(directory, "/key.pem")};
}

absl::Status WriteMemberFiles(const std::string& directory,
                              const KeyAndCertificate& member,
                              absl::string_view authority) {
  // Of a link, what it points to is replaced.
  std::error_code error;
  const std::filesystem::path there =
      std::filesystem::canonical(directory, error);
  const NewDirectory made(error ? directory : there.string(), "new");
  RETURN_IF_ERROR(made.Discard());  // of an attempt that did not end
  RETURN_IF_ERROR(MakePrivateDirectory(made.aside()));
  const MemberFiles files = FilesOfMember(made.aside());
  RETURN_IF_ERROR(WritePrivateFile(files.authority, authority));
  RETURN_IF_ERROR(WritePrivateFile(files.key, member.key));
  RETURN_IF_ERROR(WritePrivateFile(files.certificate, member.certificate));
  RETURN_IF_ERROR(made.PublishOrReplace());
  return made.Discard();
}

absl::Status CheckMemberFiles(const std::string& directory, PeerRole role,
                              absl::Time now) {
  const absl::Status status = Check(FilesOfMember(directory), role, now);
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("the certificate in ", directory,
                                   " is of no use: ", status.message(),
                                   "; make another with: troupe cluster ",
                                   "certificate HOST --role ", RoleName(role)));
}

}  // namespace troupe
