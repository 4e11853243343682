// Op types in families, for colours. The first pattern that fits wins; a gradient belongs to the
// family of its op.
const FAMILIES = [
  ['transfer', 'Transfer, cast', /^(memcpy|transfer_|cast$|share_data|assign$|print$)/],
  ['io', 'Feed, fetch', /^(feed|fetch|read$|create_.*reader|load|save)/],
  ['communication', 'Communication', /^(c_|send|recv|barrier|alltoall|partial_(send|recv))/],
  ['optimizer', 'Optimizer', /^(sgd|momentum|adam|adagrad|rmsprop|lamb|lars|ftrl|update|clip_by_norm|check_finite|update_loss)/],
  ['control', 'Control flow', /^(while|conditional_block|recurrent|select_|increment|less_|greater_|equal|not_equal|logical_|array_|write_to_array|read_from_array|lod_array|tensor_array|is_empty)/],
  ['random', 'Random', /(random|dropout|randint|randperm|bernoulli|multinomial|sampling_id)/],
  ['detection', 'Detection', /(nms|prior_box|box_coder|anchor|yolo|roi_|bipartite|iou|target_assign|mine_hard|proposal|density_prior)/],
  ['conv', 'Convolution, pooling', /(conv|pool|interp|unfold|im2|pixel_shuffle|grid_sampl)/],
  ['norm', 'Normalisation', /(batch_norm|layer_norm|group_norm|instance_norm|lrn|^norm|sync_batch)/],
  ['matrix', 'Matrix, recurrent', /^(mul$|matmul|fc$|bmm|mv$|dot$|addmm|rnn|lstm|gru|cudnn_lstm|attention|multihead|einsum|fused_(gemm|attention|fc))/],
  ['activation', 'Activation', /(relu|sigmoid|tanh|gelu|swish|softmax|silu|mish|elu|hard_|softplus|softsign|prelu|maxout|cross_entropy|_loss)/],
  ['reduce', 'Reduction, ordering', /^(reduce_|mean|sum$|arg_|top_k|argsort|cumsum|max$|min$|unique|accuracy|auc|p_norm|frobenius|squared_l2)/],
  ['shape', 'Shape, indexing', /(reshape|transpose|flatten|squeeze|concat|split|slice|gather|scatter|stack|expand|tile|pad|shape|flip|roll|index|where|one_hot|lookup_table|embedding|fill_|assign_value|range|linspace|eye|meshgrid|unbind|size$|sequence_|lod_|view|coalesce)/],
  ['elementwise', 'Elementwise', /(elementwise_|scale|^(add|sub|mul|div|pow|sqrt|rsqrt|exp|log|abs|square|floor|ceil|round|clip|sign|erf|reciprocal|cos|sin|addto|grad_add|bitwise)|elemwise)/],
];
const OTHER = ['other', 'Other', null];

// The [key, title, pattern] of a type.
function familyOf(type) {
  const name = type.replace(/(_grad)+$/, '').replace(/^fused?_/, '');
  return FAMILIES.find(([, , pattern]) => pattern.test(name)) ?? OTHER;
}
