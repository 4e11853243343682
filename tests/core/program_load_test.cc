// Long because every field of the wire format, of every version, has its case.
#include "core/program_load.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/io/file.h"
#include "proto/framework.pb.h"
#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using AttrDesc = proto::OpDesc::Attr;

// A program with one empty block.
proto::ProgramDesc Empty() {
  proto::ProgramDesc program;
  program.add_blocks()->set_idx(0);
  program.mutable_blocks(0)->set_parent_idx(-1);
  return program;
}

proto::BlockDesc* AddBlock(proto::ProgramDesc& program, int parent) {
  const int idx = program.blocks_size();
  proto::BlockDesc* block = program.add_blocks();
  block->set_idx(idx);
  block->set_parent_idx(parent);
  return block;
}

proto::OpDesc* AddOp(proto::BlockDesc* block, const std::string& type) {
  proto::OpDesc* op = block->add_ops();
  op->set_type(type);
  return op;
}

void AddSlot(google::protobuf::RepeatedPtrField<proto::OpDesc::Var>* slots, const std::string& name,
             const std::vector<std::string>& args) {
  proto::OpDesc::Var* slot = slots->Add();
  slot->set_parameter(name);
  for (const std::string& arg : args) slot->add_arguments(arg);
}

AttrDesc* AddAttr(proto::OpDesc* op, const std::string& name, proto::AttrType type) {
  AttrDesc* attr = op->add_attrs();
  attr->set_name(name);
  attr->set_type(type);
  return attr;
}

proto::VarDesc* AddVar(proto::BlockDesc* block, const std::string& name,
                       proto::VarType::Type kind = proto::VarType::LOD_TENSOR) {
  proto::VarDesc* var = block->add_vars();
  var->set_name(name);
  var->mutable_type()->set_type(kind);
  return var;
}

proto::VarDesc* AddTensor(proto::BlockDesc* block, const std::string& name,
                          const std::vector<int64_t>& dims) {
  proto::VarDesc* var = AddVar(block, name);
  proto::VarType::TensorDesc* tensor = var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
  tensor->set_data_type(proto::VarType::FP32);
  for (const int64_t dim : dims) tensor->add_dims(dim);
  return var;
}

// Attributes of every kind, and such as no Paddle writes but that are legal on the wire.
void AddAttrs(proto::OpDesc* op) {
  AddAttr(op, "int", proto::INT)->set_i(-7);
  AddAttr(op, "float", proto::FLOAT)->set_f(0.1f);
  AddAttr(op, "string", proto::STRING)->set_s(std::string("\0\xff", 2));
  for (const int v : {1, -2}) {
    (v == 1 ? AddAttr(op, "ints", proto::INTS) : op->mutable_attrs(op->attrs_size() - 1))
        ->add_ints(v);
  }
  AddAttr(op, "floats", proto::FLOATS)->add_floats(std::nanf("1"));
  AddAttr(op, "strings", proto::STRINGS)->add_strings("a");
  AddAttr(op, "bool", proto::BOOLEAN)->set_b(false);
  AddAttr(op, "bools", proto::BOOLEANS)->add_bools(true);
  AddAttr(op, "block", proto::BLOCK)->set_block_idx(1);
  AddAttr(op, "long", proto::LONG)->set_l(std::numeric_limits<int64_t>::min());
  AddAttr(op, "blocks", proto::BLOCKS)->add_blocks_idx(1);
  AddAttr(op, "longs", proto::LONGS)->add_longs(int64_t{1} << 40);
  AddAttr(op, "float64s", proto::FLOAT64S)->add_float64s(0.1);
  AddAttr(op, "var", proto::VAR)->set_var_name("x");
  AddAttr(op, "vars", proto::VARS)->add_vars_name("x");
  AddAttr(op, "float64", proto::FLOAT64)->set_float64(-0.0);
  proto::Scalar* scalar = AddAttr(op, "scalar", proto::SCALAR)->mutable_scalar();
  scalar->set_type(proto::Scalar::COMPLEX128);
  scalar->mutable_c()->set_r(1);
  scalar->mutable_c()->set_i(2);
  AttrDesc* scalars = AddAttr(op, "scalars", proto::SCALARS);
  scalars->add_scalars()->set_type(proto::Scalar::LONG);
  scalars->mutable_scalars(0)->set_i(5);

  AddAttr(op, "int without value", proto::INT);
  AddAttr(op, "string without value", proto::STRING);
  AddAttr(op, "empty list", proto::LONGS);
  AddAttr(op, "value of another kind", proto::INT)->set_f(1);
  AddAttr(op, "value of another kind too", proto::INT)->set_i(0);
  op->mutable_attrs(op->attrs_size() - 1)->add_longs(3);
  AddAttr(op, "scalar without value", proto::SCALAR)
      ->mutable_scalar()
      ->set_type(proto::Scalar::FLOAT64);
  AddAttr(op, "listed twice", proto::INT)->set_i(1);
  AddAttr(op, "listed twice", proto::INT)->set_i(2);
}

// Variables of every kind.
void AddVars(proto::BlockDesc* block) {
  using VarType = proto::VarType;
  proto::VarDesc* x = AddTensor(block, "x", {-1, 3});
  x->mutable_type()->mutable_lod_tensor()->set_lod_level(0);
  x->set_persistable(false);
  proto::VarDesc* w = AddTensor(block, "w", {3, 4});
  w->set_persistable(true);
  w->set_is_parameter(true);
  w->set_stop_gradient(true);
  w->set_need_check_feed(true);
  w->add_attrs()->set_name("note");
  w->mutable_attrs(0)->set_type(proto::STRING);
  w->mutable_attrs(0)->set_s("of a variable");
  AddVar(block, "no type said");
  AddTensor(block, "old flatten", {-1917, 1});
  AddTensor(block, "size_t", {})
      ->mutable_type()
      ->mutable_lod_tensor()
      ->mutable_tensor()
      ->set_data_type(VarType::SIZE_T);
  VarType* rows = AddVar(block, "rows", VarType::SELECTED_ROWS)->mutable_type();
  rows->mutable_selected_rows()->set_data_type(VarType::FP64);
  rows->mutable_selected_rows()->add_dims(-1);
  VarType* array = AddVar(block, "array", VarType::LOD_TENSOR_ARRAY)->mutable_type();
  array->mutable_tensor_array()->mutable_tensor()->set_data_type(VarType::INT64);
  array->mutable_tensor_array()->set_lod_level(1);
  VarType* reader = AddVar(block, "reader", VarType::READER)->mutable_type();
  reader->mutable_reader()->add_lod_tensor()->mutable_tensor()->set_data_type(VarType::FP16);
  AddVar(block, "tuple", VarType::TUPLE)
      ->mutable_type()
      ->mutable_tuple()
      ->add_element_type(VarType::INT8);
  AddVar(block, "strings", VarType::STRINGS)
      ->mutable_type()
      ->mutable_strings()
      ->set_data_type(VarType::PSTRING);
  AddVar(block, "coo", VarType::SPARSE_COO)
      ->mutable_type()
      ->mutable_sparse_coo()
      ->set_data_type(VarType::BF16);
  for (const VarType::Type kind :
       {VarType::FEED_MINIBATCH, VarType::FETCH_LIST, VarType::STEP_SCOPES, VarType::LOD_RANK_TABLE,
        VarType::PLACE_LIST, VarType::FETCH_VAR_LIST, VarType::RAW, VarType::STRING, VarType::VOCAB,
        VarType::FEED_LIST, VarType::SPARSE_CSR}) {
    AddVar(block, VarType::Type_Name(kind), kind);
  }
}

// Gives every message of a program a field that no version knows.
void AddUnknownFields(google::protobuf::Message* message) {
  const google::protobuf::Reflection* reflection = message->GetReflection();
  reflection->MutableUnknownFields(message)->AddVarint(1000, 7);
  reflection->MutableUnknownFields(message)->AddGroup(1001)->AddLengthDelimited(1, "in a group");
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      AddUnknownFields(reflection->MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      AddUnknownFields(reflection->MutableRepeatedMessage(message, field, i));
    }
  }
}

// A program that has everything.
proto::ProgramDesc Everything() {
  proto::ProgramDesc program = Empty();
  AddVars(program.mutable_blocks(0));
  proto::OpDesc* op = AddOp(program.mutable_blocks(0), "mul");
  AddSlot(op->mutable_inputs(), "X", {"x", "@EMPTY@", "not declared"});
  AddSlot(op->mutable_inputs(), "Y", {});
  AddSlot(op->mutable_outputs(), "Out", {"x"});
  AddAttrs(op);
  op->set_is_target(false);
  AddOp(program.mutable_blocks(0), "second");
  proto::BlockDesc* sub = AddBlock(program, 0);
  AddTensor(sub, "x", {7});  // hides the outer one
  AddOp(sub, "inner")->set_is_target(true);
  sub->set_forward_block_idx(-1);
  AddBlock(program, 1)->set_forward_block_idx(1);
  program.mutable_version()->set_version(2006002);
  auto* pair = program.mutable_op_version_map()->add_pair();
  pair->set_op_name("mul");
  pair->mutable_op_version()->set_version(3);
  return program;
}

std::string MessageOf(const std::string& bytes) {
  return std::string(LoadProgram(bytes).status().message());
}
std::string MessageOf(const proto::ProgramDesc& program) {
  return MessageOf(program.SerializePartialAsString());
}

void ExpectLossless(const proto::ProgramDesc& program) {
  const std::string bytes = program.SerializeAsString();
  const absl::StatusOr<Program> loaded = LoadProgram(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const absl::StatusOr<std::string> saved = SaveProgram(*loaded);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(*saved, bytes);
  proto::ProgramDesc again;
  ASSERT_TRUE(again.ParseFromString(*saved));
  google::protobuf::util::MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  differencer.set_field_comparator(&comparator);
  EXPECT_TRUE(differencer.Compare(program, again)) << differences;
}

TEST(ProgramLoadTest, LoadThenSaveGivesAnEqualMessage) { ExpectLossless(Everything()); }

TEST(ProgramLoadTest, UnknownFieldsSurviveInEveryMessage) {
  proto::ProgramDesc program = Everything();
  AddUnknownFields(&program);
  ExpectLossless(program);
}

// Paddle-Lite's optimiser writes such programs, and Paddle loads them.
TEST(ProgramLoadTest, BlockZeroMayNameItselfAsItsParent) {
  proto::ProgramDesc program = Empty();
  program.mutable_blocks(0)->set_parent_idx(0);
  AddBlock(program, 0);
  const absl::StatusOr<Program> loaded = LoadProgram(program.SerializeAsString());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->blocks[0].parent_idx, -1);
  EXPECT_EQ(loaded->blocks[1].parent_idx, 0);
}

TEST(ProgramLoadTest, AttributesHaveTheirValues) {
  const absl::StatusOr<Program> program = LoadProgram(Everything().SerializeAsString());
  ASSERT_TRUE(program.ok()) << program.status();
  const Op& op = program->blocks[0].ops[0];
  const auto value = [&](absl::string_view name) { return op.FindAttr(name)->value; };
  EXPECT_EQ(value("int"), AttrValue(int32_t{-7}));
  EXPECT_EQ(value("float"), AttrValue(0.1f));
  EXPECT_EQ(value("string"), AttrValue(std::string("\0\xff", 2)));
  EXPECT_EQ(value("ints"), AttrValue(std::vector<int32_t>{1, -2}));
  EXPECT_TRUE(std::isnan(std::get<std::vector<float>>(value("floats"))[0]));
  EXPECT_EQ(value("strings"), AttrValue(std::vector<std::string>{"a"}));
  EXPECT_EQ(value("bool"), AttrValue(false));
  EXPECT_EQ(value("bools"), AttrValue(std::vector<bool>{true}));
  EXPECT_EQ(value("block"), AttrValue(BlockIndex{1}));
  EXPECT_EQ(value("long"), AttrValue(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(value("blocks"), AttrValue(BlockIndices{{1}}));
  EXPECT_EQ(value("longs"), AttrValue(std::vector<int64_t>{int64_t{1} << 40}));
  EXPECT_EQ(value("float64s"), AttrValue(std::vector<double>{0.1}));
  EXPECT_EQ(value("var"), AttrValue(VarName{"x"}));
  EXPECT_EQ(value("vars"), AttrValue(VarNames{{"x"}}));
  EXPECT_TRUE(std::signbit(std::get<double>(value("float64"))));
  EXPECT_EQ(value("scalar"), AttrValue(Scalar{Complex{1, 2}}));
  EXPECT_EQ(value("scalars"), AttrValue(std::vector<Scalar>{{int64_t{5}}}));
  EXPECT_EQ(value("int without value"), AttrValue(int32_t{0}));
  EXPECT_EQ(value("value of another kind"), AttrValue(int32_t{0}));
  EXPECT_EQ(value("listed twice"), AttrValue(int32_t{2}));
}

TEST(ProgramLoadTest, VariablesHaveTheirTypes) {
  const absl::StatusOr<Program> program = LoadProgram(Everything().SerializeAsString());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->version, 2006002);
  const Block& block = program->blocks[0];
  const std::vector<int32_t> positions = VarPositions(*program, block);
  const auto var = [&](absl::string_view name) -> const Var& {
    return block.vars[positions[program->Find(name)]];
  };
  EXPECT_EQ(var("x").dtype, DType::kFloat32);
  EXPECT_THAT(var("x").dims, ElementsAre(-1, 3));
  EXPECT_FALSE(var("x").persistable);
  EXPECT_TRUE(var("w").persistable);
  EXPECT_TRUE(var("w").is_parameter);
  EXPECT_TRUE(var("w").stop_gradient);
  EXPECT_TRUE(var("w").need_check_feed);
  EXPECT_EQ(var("no type said").dtype, DType::kUndefined);
  EXPECT_THAT(var("old flatten").dims, ElementsAre(-1, 1));
  EXPECT_EQ(var("size_t").dtype, DType::kInt64);
  EXPECT_EQ(var("rows").kind, VarKind::kSelectedRows);
  EXPECT_EQ(var("rows").dtype, DType::kFloat64);
  EXPECT_EQ(var("array").lod_level, 1);
  EXPECT_EQ(var("coo").dtype, DType::kBFloat16);
  EXPECT_EQ(var("FETCH_LIST").kind, VarKind::kFetchList);
  EXPECT_EQ(program->blocks[1].vars[0].id, var("x").id);
}

TEST(ProgramLoadTest, OpsHaveTheirArguments) {
  const absl::StatusOr<Program> program = LoadProgram(Everything().SerializeAsString());
  ASSERT_TRUE(program.ok()) << program.status();
  const Op& op = program->blocks[0].ops[0];
  EXPECT_EQ(op.type, "mul");
  EXPECT_TRUE(op.has_is_target);
  ASSERT_EQ(op.FindInput("X")->args.size(), 3);
  EXPECT_EQ(program->NameOf(op.FindInput("X")->args[1]), kEmptyVarName);
  EXPECT_TRUE(op.FindInput("Y")->args.empty());
  EXPECT_EQ(op.FindOutput("Out")->args, ArgIds{program->Find("x")});
  EXPECT_FALSE(program->blocks[0].ops[1].has_is_target);
  EXPECT_TRUE(program->blocks[1].ops[0].is_target);
  EXPECT_EQ(program->blocks[2].parent_idx, 1);
  EXPECT_EQ(program->blocks[2].forward_block_idx, 1);
}

// Lists may be written packed; other writers do.
TEST(ProgramLoadTest, ReadsPackedLists) {
  proto::ProgramDesc program = Empty();
  AttrDesc* ints = AddAttr(AddOp(program.mutable_blocks(0), "op"), "ints", proto::INTS);
  ints->mutable_unknown_fields()->AddLengthDelimited(AttrDesc::kIntsFieldNumber, "\x01\x96\x01");
  AttrDesc* floats = AddAttr(program.mutable_blocks(0)->mutable_ops(0), "floats", proto::FLOATS);
  floats->mutable_unknown_fields()->AddLengthDelimited(AttrDesc::kFloatsFieldNumber,
                                                       std::string("\0\0\x80\x3f", 4));
  proto::VarType::TensorDesc* tensor = AddTensor(program.mutable_blocks(0), "x", {})
                                           ->mutable_type()
                                           ->mutable_lod_tensor()
                                           ->mutable_tensor();
  tensor->mutable_unknown_fields()->AddLengthDelimited(proto::VarType::TensorDesc::kDimsFieldNumber,
                                                       "\x02\x03");

  const absl::StatusOr<Program> loaded = LoadProgram(program.SerializeAsString());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Op& op = loaded->blocks[0].ops[0];
  EXPECT_EQ(op.FindAttr("ints")->value, AttrValue(std::vector<int32_t>{1, 150}));
  EXPECT_EQ(op.FindAttr("floats")->value, AttrValue(std::vector<float>{1}));
  EXPECT_THAT(loaded->blocks[0].vars[0].dims, ElementsAre(2, 3));
  proto::ProgramDesc want, got;
  ASSERT_TRUE(want.ParseFromString(program.SerializeAsString()));
  ASSERT_TRUE(got.ParseFromString(*SaveProgram(*loaded)));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(want, got));
}

TEST(ProgramLoadTest, ChangesAreSavedAndTheRestIsKept) {
  proto::ProgramDesc desc = Everything();
  AddUnknownFields(&desc);
  absl::StatusOr<Program> program = LoadProgram(desc.SerializeAsString());
  ASSERT_TRUE(program.ok()) << program.status();
  program->blocks[0].vars[0].dims = {8, 3};
  program->blocks[0].vars[0].persistable = true;
  program->blocks[0].ops[0].attrs[0].value = int32_t{9};
  program->blocks[0].ops[0].attrs[1].value = std::string("now text");
  program->blocks[0].ops[0].outputs[0].args[0] = program->Intern("new");
  program->version = 3;

  proto::ProgramDesc saved;
  ASSERT_TRUE(saved.ParseFromString(*SaveProgram(*program)));
  auto* tensor = desc.mutable_blocks(0)->mutable_vars(0)->mutable_type()->mutable_lod_tensor();
  tensor->mutable_tensor()->set_dims(0, 8);
  desc.mutable_blocks(0)->mutable_vars(0)->set_persistable(true);
  proto::OpDesc* op = desc.mutable_blocks(0)->mutable_ops(0);
  op->mutable_attrs(0)->set_i(9);
  op->mutable_attrs(1)->Clear();
  op->mutable_attrs(1)->set_name("float");
  op->mutable_attrs(1)->set_type(proto::STRING);
  op->mutable_attrs(1)->set_s("now text");
  op->mutable_outputs(0)->set_arguments(0, "new");
  desc.mutable_version()->set_version(3);
  EXPECT_EQ(saved.SerializeAsString(), desc.SerializeAsString());
}

TEST(ProgramLoadTest, ProgramsMadeHereCanBeSaved) {
  Program program;
  Block& block = program.blocks.emplace_back();
  block.vars.push_back({.id = program.Intern("x"), .dtype = DType::kFloat32, .dims = {2, -1}});
  Op& op = block.ops.emplace_back();
  op.type = "relu";
  op.inputs.push_back({"X", {program.Intern("x")}});
  op.attrs.push_back({"scale", 0.5f});
  const absl::StatusOr<std::string> bytes = SaveProgram(program);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<Program> loaded = LoadProgram(*bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->blocks[0].vars[0].dims, ElementsAre(2, -1));
  EXPECT_EQ(loaded->blocks[0].ops[0].FindAttr("scale")->value, AttrValue(0.5f));

  program.blocks[0].vars[0].id = 5;
  EXPECT_EQ(SaveProgram(program).status().message(), "the program uses variable id 5 of 1");
}

TEST(ProgramLoadTest, BlocksMustFormATree) {
  const auto message = [](const std::function<void(proto::ProgramDesc&)>& damage) {
    proto::ProgramDesc program = Empty();
    AddBlock(program, 0);
    damage(program);
    return MessageOf(program);
  };
  EXPECT_EQ(message([](auto& p) { p.clear_blocks(); }), "the program has no block");
  EXPECT_EQ(message([](auto& p) { p.mutable_blocks(1)->set_idx(7); }),
            "block 1: idx is 7, expected 1");
  EXPECT_EQ(message([](auto& p) { p.mutable_blocks(0)->set_parent_idx(1); }),
            "block 0: parent_idx is 1, expected -1");
  EXPECT_EQ(message([](auto& p) { p.mutable_blocks(1)->set_parent_idx(1); }),
            "block 1: parent_idx is 1, expected 0 to 0");
  EXPECT_EQ(message([](auto& p) { p.mutable_blocks(1)->set_parent_idx(-1); }),
            "block 1: parent_idx is -1, expected 0 to 0");
  EXPECT_EQ(message([](auto& p) { p.mutable_blocks(1)->set_forward_block_idx(2); }),
            "block 1: forward_block_idx is 2, expected -1 to 1");
  EXPECT_EQ(message([](auto& p) {
              for (int i = 2; i <= kMaxBlockDepth; ++i) AddBlock(p, i - 1);
            }),
            "block 64: blocks nest deeper than 64");
}

TEST(ProgramLoadTest, BlockAttributesMustNotLeadBack) {
  const auto use = [](proto::ProgramDesc& program, int from, int to) {
    AddAttr(AddOp(program.mutable_blocks(from), "while"), "sub_block", proto::BLOCK)
        ->set_block_idx(to);
  };
  proto::ProgramDesc program = Empty();
  for (int i = 1; i <= kMaxBlockDepth; ++i) AddBlock(program, 0);
  use(program, 0, 1);
  use(program, 0, 1);  // used twice: not a cycle
  use(program, 1, 2);
  EXPECT_EQ(MessageOf(program), "");

  proto::ProgramDesc outside = program;
  use(outside, 0, kMaxBlockDepth + 1);
  EXPECT_EQ(MessageOf(outside),
            "block 0, op #2 while: attribute 'sub_block' is block 65, but there are 65");
  proto::ProgramDesc cycle = program;
  use(cycle, 2, 1);
  EXPECT_EQ(MessageOf(cycle), "block 2, op #0 while: attribute 'sub_block' leads back to block 1");
  proto::ProgramDesc list = program;
  AddAttr(AddOp(list.mutable_blocks(1), "case"), "blocks", proto::BLOCKS)->add_blocks_idx(1);
  EXPECT_EQ(MessageOf(list), "block 1, op #1 case: attribute 'blocks' leads back to block 1");
  proto::ProgramDesc deep = program;
  for (int i = 2; i < kMaxBlockDepth; ++i) use(deep, i, i + 1);
  EXPECT_THAT(MessageOf(deep), HasSubstr("blocks nest deeper than 64"));
}

TEST(ProgramLoadTest, ErrorsNameTheVariable) {
  const auto message = [](const std::function<void(proto::BlockDesc*)>& add) {
    proto::ProgramDesc program = Empty();
    AddTensor(program.mutable_blocks(0), "x", {1});
    add(program.mutable_blocks(0));
    return MessageOf(program);
  };
  EXPECT_EQ(message([](auto* b) { AddTensor(b, "x", {1}); }),
            "block 0: variable #1 'x': is declared twice");
  EXPECT_EQ(message([](auto* b) { AddTensor(b, "y", std::vector<int64_t>(10, 1)); }),
            "block 0: variable #1 'y': has 10 dims, the most is 9");
  EXPECT_EQ(message([](auto* b) {
              AddTensor(b, "y", {int64_t{1} << 40, -1, int64_t{1} << 40});
            }),
            "block 0: variable #1 'y': dims [1099511627776,-1,1099511627776] are too large for "
            "memory");
  EXPECT_EQ(message([](auto* b) {
              AddTensor(b, "y", {})->mutable_type()->mutable_lod_tensor()->set_lod_level(-2);
            }),
            "block 0: variable #1 'y': LoD level is -2, expected 0 to 16");
  EXPECT_EQ(message([](auto* b) { AddVar(b, "y", proto::VarType::FP32); }),
            "block 0: variable #1 'y': its kind is FP32, an element type");
  EXPECT_EQ(message([](auto* b) { b->add_vars()->set_name("y"); }),
            "block 0: variable #1 'y': required field 'type' is missing or has a value that does "
            "not exist");
  EXPECT_EQ(message([](auto* b) { AddTensor(b, "y\n\xff", {-1})->clear_type(); }),
            "block 0: variable #1 'y\\n\xff': required field 'type' is missing or has a value "
            "that does not exist");
  EXPECT_EQ(message([](auto* b) { AddVar(b, "y")->mutable_type()->mutable_lod_tensor(); }),
            "block 0: variable #1 'y': required field 'type.lod_tensor.tensor' is missing or has "
            "a value that does not exist");
}

// Paddle leaves it open for some gradients within loops.
TEST(ProgramLoadTest, ADTypeMayBeMissingButNotUnknown) {
  proto::ProgramDesc program = Empty();
  auto* tensor = AddTensor(program.mutable_blocks(0), "y", {4, 6})
                     ->mutable_type()
                     ->mutable_lod_tensor()
                     ->mutable_tensor();
  tensor->clear_data_type();
  const absl::StatusOr<Program> loaded = LoadProgram(program.SerializePartialAsString());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->blocks[0].vars[0].dtype, DType::kUndefined);
  EXPECT_EQ(loaded->blocks[0].vars[0].dims, (std::vector<int64_t>{4, 6}));
  tensor->mutable_unknown_fields()->AddVarint(1, 99);
  EXPECT_THAT(MessageOf(program), ::testing::HasSubstr("a value that does not exist"));
}

TEST(ProgramLoadTest, ErrorsNameTheOp) {
  const auto message = [](const std::function<void(proto::OpDesc*)>& damage) {
    proto::ProgramDesc program = Empty();
    AddOp(program.mutable_blocks(0), "feed");
    damage(AddOp(program.mutable_blocks(0), "relu"));
    return MessageOf(program);
  };
  EXPECT_EQ(message([](auto* op) { op->clear_type(); }),
            "block 0: op #1: required field 'type' is missing or has a value that does not exist");
  EXPECT_EQ(message([](auto* op) { op->set_type(""); }), "block 0: op #1: its type is empty");
  EXPECT_EQ(message([](auto* op) { op->add_inputs()->add_arguments("x"); }),
            "block 0: op #1 relu: required field 'inputs[0].parameter' is missing or has a value "
            "that does not exist");
  EXPECT_EQ(message([](auto* op) {
              AddSlot(op->mutable_inputs(), "X", {});
              AddSlot(op->mutable_inputs(), "X", {});
            }),
            "block 0: op #1 relu: input 'X' is listed twice");
  EXPECT_EQ(message([](auto* op) {
              op->add_attrs()->set_name("axis");
              op->mutable_attrs(0)->mutable_unknown_fields()->AddVarint(AttrDesc::kTypeFieldNumber,
                                                                        99);
            }),
            "block 0: op #1 relu: required field 'attrs[0].type' is missing or has a value that "
            "does not exist");
}

TEST(ProgramLoadTest, ErrorsOfTheWireTellTheByte) {
  proto::ProgramDesc program = Empty();
  AddTensor(program.mutable_blocks(0), "x", {1});
  AddOp(program.mutable_blocks(0), "relu");
  std::string bytes = program.SerializeAsString();
  EXPECT_EQ(MessageOf(bytes.substr(0, bytes.size() - 1)),
            "the field at byte 0 says 38 bytes, but only 37 are left");
  EXPECT_EQ(LoadProgram("no program").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(MessageOf(""), "the program has no block");

  const size_t type_at = bytes.find("relu") - 1;
  bytes[type_at] = 9;  // the length of "relu"
  EXPECT_EQ(MessageOf(bytes), "block 0: op #0: the message at byte 34 is damaged");
}

// True when protobuf itself takes the bytes for a program whose references hold.
bool IsWhole(const std::string& bytes) {
  proto::ProgramDesc program;
  return program.ParsePartialFromString(bytes) && program.IsInitialized() &&
         program.blocks_size() >= 2;  // block 0 refers to block 1
}

// Cut off anywhere or with any bit turned: an error, or a program that can be saved and loaded.
TEST(ProgramLoadTest, SurvivesDamage) {
  const std::string bytes = Everything().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const absl::StatusOr<Program> program = LoadProgram(bytes.substr(0, size));
    EXPECT_EQ(program.ok(), IsWhole(bytes.substr(0, size))) << size;
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const absl::StatusOr<Program> program = LoadProgram(damaged);
    if (!program.ok()) continue;
    const absl::StatusOr<std::string> saved = SaveProgram(*program);
    ASSERT_TRUE(saved.ok()) << bit;
    ASSERT_TRUE(LoadProgram(*saved).ok()) << bit;
  }
}

TEST(ProgramLoadTest, ReadsFilesAndNamesThemInErrors) {
  const testing::TempFolder folder;
  const std::string path = folder / "model.pdmodel";
  absl::StatusOr<FileWriter> file = FileWriter::Create(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append(Everything().SerializeAsString()).ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_TRUE(ReadProgram(path).ok());
  EXPECT_EQ(ReadProgram(folder / "none").status().message(),
            "cannot open '" + (folder / "none") + "': No such file or directory");
}

}  // namespace
}  // namespace interp
