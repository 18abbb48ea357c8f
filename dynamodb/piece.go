package dynamodb

import "github.com/weir-limiter/weir"

// shardPiece is what a lease stands for on one shard. It counts milli-units, since a shard's share may
// be less than a unit; all pieces together are whole units.
type shardPiece struct {
	milli int64
	shard int
}

// pieceMark is by how much a mark holds the shard beside the thousandths.
const pieceMark = 1000

// shardPieceOf reads a piece as the limiter keeps it: the mark has the shard, and what is below a unit.
func shardPieceOf(p weir.Piece) shardPiece {
	return shardPiece{p.Units*1000 + p.Mark%pieceMark, int(p.Mark / pieceMark)}
}

// toDriver is the piece as the limiter keeps it.
func (p shardPiece) toDriver() weir.Piece {
	return weir.Piece{Units: p.milli / 1000, Mark: int64(p.shard)*pieceMark + p.milli%1000}
}
