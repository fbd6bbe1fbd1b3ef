package Collectd::Graph::Type::SmapsMemory;

# Draws the type "memory" in collection3. The values of the smaps plugin do not
# add up as used, free and cached do: USS and the group's part of shared memory
# are stacked (together they are PSS), swap is a line over them, and all other
# values have lines in a second picture. Memory of other plugins is drawn as
# before.

use strict;
use warnings;
use base ('Collectd::Graph::Type::GenericStacked');

use Collectd::Graph::Common (qw(ident_to_filename));
use URI::Escape (qw(uri_escape));

my $Format = '%8.1lf';
my %Functions = (avg => 'AVERAGE', max => 'MAX');
my @StackedNames = (qw(pss uss swap));
my @LineColors = (qw(4e79a7 f28e2b 59a14f e15759 76b7b2 edc948
    b07aa1 9c755f ff9da7 1b3a6b a0cbe8 8cd17d));

sub _is_stacked
{
  my $ident = shift;
  my $name = $ident->{'type_instance'} || '';

  return (grep { $_ eq $name } (@StackedNames));
}

# The files of one picture have the same key.
sub _picture_key
{
  my $ident = shift;
  my @parts = map { defined ($_) ? $_ : '' }
    (@$ident{qw(hostname plugin plugin_instance)});

  if ($ident->{'plugin'} eq 'smaps')
  {
    push (@parts, _is_stacked ($ident) ? 0 : 1);
  }
  return (join ("\0", @parts));
}

# The pictures, each as a list of files.
sub _pictures
{
  my $obj = shift;
  my %pictures = ();

  for (@{$obj->{'files'}})
  {
    push (@{$pictures{_picture_key ($_)}}, $_);
  }
  return (map { $pictures{$_} } (sort (keys %pictures)));
}

sub getGraphsNum
{
  my $obj = shift;
  my @pictures = $obj->_pictures ();

  return (scalar (@pictures));
}

sub getGraphArgs
{
  my ($obj, $index) = @_;
  my $idents = ($obj->_pictures ())[$index];
  my $first = $idents->[0];
  my @args = ();

  for (qw(hostname plugin plugin_instance type))
  {
    next if (!defined ($first->{$_}));
    push (@args, "$_=" . uri_escape ($first->{$_}));
  }
  if ($first->{'plugin'} eq 'smaps')
  {
    push (@args, map { 'type_instance=' . uri_escape ($_->{'type_instance'}) }
      (@$idents));
  }
  return (join (';', @args));
}

sub getRRDArgs
{
  my ($obj, $index) = @_;
  my $idents = ($obj->_pictures ())[$index];
  my %files = ();

  if ($idents->[0]{'plugin'} ne 'smaps')
  {
    local $obj->{'files'} = $idents;
    return ($obj->SUPER::getRRDArgs (0));
  }

  for (@$idents)
  {
    $files{$_->{'type_instance'}} = ident_to_filename ($_);
    # A colon would end the name of the file.
    $files{$_->{'type_instance'}} =~ s/:/\\:/g;
  }
  my $title = "Memory of $idents->[0]{'plugin_instance'}"
    . " on $idents->[0]{'hostname'}";
  my @head = ('-v', 'MiB', '-X', '0', '-l', '0');

  if ($files{'pss'} && $files{'uss'})
  {
    return (['-t', $title, @head, _stack (\%files)]);
  }
  return (['-t', "$title, further values", @head, _lines (\%files)]);
}

# A line of the legend. The minimum has no space in it: names are long, and
# GraphWidth is 400.
sub _row
{
  my ($shape, $legend, $avg, $max, @options) = @_;

  return (join (':', $shape, sprintf ('%-17s', $legend), @options),
    "GPRINT:$avg:AVERAGE:$Format Avg,", "GPRINT:$max:MAX:$Format Max,",
    "GPRINT:$avg:LAST:$Format Last\\l");
}

# In MiB: the prefixes of rrdtool would make it MB.
sub _define
{
  my ($name, $file) = @_;

  return (map { ("DEF:${_}_bytes_$name=$file:value:$Functions{$_}",
    "CDEF:${_}_$name=${_}_bytes_$name,1048576,/") } (sort (keys (%Functions))));
}

sub _stack
{
  my $files = shift;
  my @ret = (_define ('pss', $files->{'pss'}), _define ('uss', $files->{'uss'}),
    'CDEF:part=avg_pss,avg_uss,-');

  push (@ret, _row ('AREA:avg_uss#4e79a7', 'USS', 'avg_uss', 'max_uss'));
  push (@ret, _row ('AREA:part#a0cbe8', 'Part of shared', 'part', 'part',
    'STACK'));
  push (@ret, _row ('LINE1:avg_pss#1b3a6b', 'PSS', 'avg_pss', 'max_pss'));
  if ($files->{'swap'})
  {
    push (@ret, _define ('swap', $files->{'swap'}));
    push (@ret, _row ('LINE2:avg_swap#e15759', 'Swap', 'avg_swap', 'max_swap'));
  }
  return (@ret);
}

sub _lines
{
  my $files = shift;
  my @names = sort (keys %$files);
  my @ret = ();

  for (my $i = 0; $i < @names; $i++)
  {
    my $color = $LineColors[$i % @LineColors];

    push (@ret, _define ($i, $files->{$names[$i]}));
    push (@ret, _row ("LINE1:avg_$i#$color", $names[$i], "avg_$i", "max_$i"));
  }
  return (@ret);
}

1;
